import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { deepFreeze, eventually, golden, temporaryDirectory } from '../src/index.ts';

// this file is a process of its own, and these files are not what `UPDATE_GOLDEN=1 npm test` is meant for
delete process.env.UPDATE_GOLDEN;

describe('golden', () => {
  test('accepts what equals the file beside the test, text as it is and anything else as JSON', () => {
    golden('golden/three-lines.yaml', 'one: 1\ntwo: 2\nthree: 3\n');
    golden('golden/three-keys.golden.json', { one: 1, two: 2, three: 3 });
  });

  test('fails on a difference, and shows the lines that differ, with their neighbours', () => {
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

  test('fails on a file that does not exist, and says how to write it', () => {
    assert.throws(() => golden('golden/nobody.yaml', 'text'), /does not exist; UPDATE_GOLDEN=1 writes it/);
  });

  test('writes the file under UPDATE_GOLDEN=1, after which it is accepted', async () => {
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

test('eventually returns what the assertion returned when it first held', async () => {
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

test('eventually gives up with the last failure and how long it waited', async () => {
  const failing = eventually(() => assert.fail('still no address'), { timeoutMs: 5, intervalMs: 1 });
  await assert.rejects(failing, /still so after 5 ms: still no address/);
});

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
