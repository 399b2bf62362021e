import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldLine } from '../../../src/http/passes/byte-writer.ts';
import { compileHeaderFilters, type HeaderFilter } from '../../../src/http/passes/header-filters.ts';

test('filters of protected fields, and with invalid names or values, are refused', () => {
  const refused: readonly HeaderFilter[] = [
    { kind: 'set', name: 'Host', value: 'bank.example' },
    { kind: 'add', name: 'content-length', value: '3' },
    { kind: 'remove', name: 'Transfer-Encoding' },
    { kind: 'set', name: 'CONNECTION', value: 'x-forwarded-for' },
    { kind: 'add', name: 'Content_Length', value: '3' },
    { kind: 'add', name: 'X-A', value: 'a\r\nX-B: b' },
    { kind: 'add', name: 'X-A', value: 'a\0' },
    { kind: 'add', name: 'X-A', value: ' a' },
    { kind: 'add', name: 'X A', value: 'a' },
    { kind: 'add', name: 'X-A:', value: 'a' },
    { kind: 'add', name: 'X-\u00c4', value: 'a' },
    { kind: 'remove', name: '' },
  ];
  const allowed: HeaderFilter = { kind: 'set', name: 'X-A', value: 'gr\u00fc\u00df dich' };
  const result = compileHeaderFilters([...refused, allowed]);
  assert.deepEqual(result.refused, refused);
  assert.deepEqual(
    result.compiled.map(({ drops, adds }) => [drops, adds].map((bytes) => Buffer.from(bytes ?? []).toString())),
    [['x-a', 'X-A: gr\u00fc\u00df dich\r\n']],
  );
});

test('a field line with an invalid name or value is refused', () => {
  assert.throws(() => fieldLine('a b', 'c'), {
    name: 'RangeError',
    message: 'invalid field name "a b": expected a token',
  });
  assert.throws(() => fieldLine('Set-Cookie', 'a=b\r\nX: y'), /invalid value of field "Set-Cookie"/);
});
