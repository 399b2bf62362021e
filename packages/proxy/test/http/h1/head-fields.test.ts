import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIELD, FIELD_NAMES, fieldIdOf } from '../../../src/http/h1/head-fields.ts';

const idOf = (name: string): number => fieldIdOf(Buffer.from(`<${name}>`, 'latin1'), 1, name.length + 1);

test('each known name has its id in any case', () => {
  assert.equal(FIELD_NAMES.length, Object.keys(FIELD).length);
  for (const [id, name] of FIELD_NAMES.entries()) {
    if (id === FIELD.other || id === FIELD.underscored) continue;
    assert.equal(idOf(name), id, name);
    assert.equal(idOf(name.toUpperCase()), id, name);
    const key = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    assert.equal(FIELD[key as keyof typeof FIELD], id, name);
  }
});

test('a name that differs from a known name in one byte has the id of other fields', () => {
  for (const name of FIELD_NAMES.filter((each) => each !== '')) {
    for (let at = 0; at < name.length; at += 1) {
      // 0x0d and 0x2d (`-`) differ only in the bit of upper and lower case, as do 0x12 and 0x32 (`2`).
      for (const byte of ['x', '0', '~', String.fromCharCode(name.charCodeAt(at) ^ 0x80)]) {
        if (byte === name[at]) continue;
        assert.equal(idOf(name.slice(0, at) + byte + name.slice(at + 1)), FIELD.other, name);
      }
      const control = String.fromCharCode(name.charCodeAt(at) & 0x1f);
      assert.equal(idOf(name.slice(0, at) + control + name.slice(at + 1)), FIELD.other, name);
    }
    assert.equal(idOf(`${name}s`), FIELD.other, name);
    assert.equal(idOf(name.slice(0, -1)), FIELD.other, name);
  }
});

test('a known name with underscores has an id of its own', () => {
  for (const name of ['X_Forwarded_For', 'X-Forwarded_For', 'Transfer_Encoding', 'content_length']) {
    assert.equal(idOf(name), FIELD.underscored, name);
  }
  assert.equal(idOf('X_Other'), FIELD.other);
  assert.equal(idOf('_ost'), FIELD.other);
});

test('a name of any length outside the known lengths has the id of other fields', () => {
  for (const length of [0, 1, 26, 31, 32, 33, 300]) assert.equal(idOf('t'.repeat(length)), FIELD.other);
});
