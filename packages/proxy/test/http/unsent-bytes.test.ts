import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnsentBytes } from '../../src/http/unsent-bytes.ts';

test('returns the bytes of all parts once, and leaves the memory of a part alone', () => {
  const unsent = new UnsentBytes();
  assert.equal(unsent.take(), undefined);
  const copy = Buffer.from('head-other').subarray(0, 5);
  unsent.set(copy);
  for (const part of ['a', 'bc', '', 'def']) unsent.append(Buffer.from(part));
  assert.equal(Buffer.from(unsent.take() ?? []).toString(), 'head-abcdef');
  assert.equal(unsent.take(), undefined);
  assert.equal(Buffer.from(copy.buffer, copy.byteOffset, 10).toString(), 'head-other');
});

test('does not copy all bytes for each part', (context) => {
  const unsent = new UnsentBytes();
  const allocate = context.mock.method(Buffer, 'allocUnsafe');
  const part = Buffer.from('x');
  for (let index = 0; index < 65_536; index += 1) unsent.append(part);
  assert.equal(unsent.take()?.length, 65_536);
  assert.ok(allocate.mock.callCount() <= 17);
});
