import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { deepFreeze, eventually, golden, temporaryDirectory } from '../src/index.ts';

// Without this line, `UPDATE_GOLDEN=1 npm test` would overwrite the golden files of this test.
delete process.env.UPDATE_GOLDEN;

describe('golden', () => {
  test('accepts a string equal to the file and a value equal to the file as JSON', () => {
    golden('golden/three-lines.yaml', 'one: 1\ntwo: 2\nthree: 3\n');
    golden('golden/three-keys.golden.json', { one: 1, two: 2, three: 3 });
  });

  test('shows the differing lines with their context', () => {
    assert.throws(
      () => golden('golden/three-lines.yaml', 'one: 1\ntwo: changed\nthree: 3\n'),
      (error: Error) => {
        assert.match(error.message, /three-lines\.yaml differs/);
        assert.match(error.message, /^- two: 2$/m);
        assert.match(error.message, /^\+ two: changed$/m);
        assert.match(error.message, /^ {2}one: 1$/m);
        return true;
      },
    );
  });

  test('names the command that writes a missing file', () => {
    assert.throws(
      () => golden('golden/nobody.yaml', 'text'),
      /does not exist: run the test with UPDATE_GOLDEN=1 to write it/,
    );
  });

  test('writes the file if UPDATE_GOLDEN=1', async () => {
    await using directory = temporaryDirectory('golden');
    const file = join(directory.path, 'new', 'value.golden.json');
    process.env.UPDATE_GOLDEN = '1';
    golden(pathToFileURL(file), { answer: 42 });
    assert.equal(readFileSync(file, 'utf8'), '{\n  "answer": 42\n}\n');
    delete process.env.UPDATE_GOLDEN;
    golden(pathToFileURL(file), { answer: 42 });
    writeFileSync(file, '{\n  "answer": 41\n}\n');
    assert.throws(() => golden(pathToFileURL(file), { answer: 42 }), /differs/);
  });
});

test('eventually returns the result of the first assertion that holds', async () => {
  let attempts = 0;
  const answer = await eventually(
    () => {
      attempts++;
      assert.ok(attempts >= 3);
      return `after ${attempts}`;
    },
    { intervalMs: 1 },
  );
  assert.equal(answer, 'after 3');
});

test('eventually throws the last failure and the waiting time', async () => {
  const failing = eventually(() => assert.fail('no address'), { timeoutMs: 5, intervalMs: 1 });
  await assert.rejects(failing, /still failing after 5 ms: no address/);
});

test('deepFreeze makes changes at every depth throw', () => {
  const value = deepFreeze({ list: [{ port: 80 }], byName: new Map([['web', { port: 443 }]]) });
  assert.throws(() => Object.assign(value, { more: true }), TypeError);
  assert.throws(() => value.list.push({ port: 81 }), TypeError);
  assert.throws(() => Object.assign(value.list[0] ?? {}, { port: 81 }), TypeError);
  assert.throws(() => Object.assign(value.byName.get('web') ?? {}, { port: 444 }), TypeError);
});

test('deepFreeze accepts a value that refers to itself', () => {
  const value: { self?: unknown } = {};
  value.self = value;
  assert.ok(Object.isFrozen(deepFreeze(value)));
});
