import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deepFreeze } from '../src/index.ts';

test('a deeply frozen value refuses every change, however deep', () => {
  const value = deepFreeze({ list: [{ port: 80 }], byName: new Map([['web', { port: 443 }]]) });
  assert.throws(() => Object.assign(value, { more: true }), TypeError);
  assert.throws(() => value.list.push({ port: 81 }), TypeError);
  assert.throws(() => Object.assign(value.list[0] ?? {}, { port: 81 }), TypeError);
  assert.throws(() => Object.assign(value.byName.get('web') ?? {}, { port: 444 }), TypeError);
});

test('a value that refers to itself is frozen too', () => {
  const value: { self?: unknown } = {};
  value.self = value;
  assert.ok(Object.isFrozen(deepFreeze(value)));
});
