import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferPool } from '../../../src/transport/tcp/write-buffers.ts';

const SIZE = 16_384;

test('copies the given bytes, and reuses a returned buffer', () => {
  const pool = new BufferPool(SIZE);
  const first = pool.copy(Buffer.alloc(SIZE, 'a'));
  pool.giveBack(first);
  const second = pool.copy(Buffer.alloc(SIZE - 1, 'b'));
  assert.equal(Buffer.from(second).toString('latin1'), 'b'.repeat(SIZE - 1));
  assert.equal(second.buffer, first.buffer);
});

test('never lends a buffer twice, also if it is returned twice', () => {
  const pool = new BufferPool(4 * SIZE);
  const first = pool.copy(Buffer.alloc(SIZE, 'a'));
  pool.giveBack(first);
  pool.giveBack(first);
  const copies = [pool.copy(Buffer.alloc(SIZE, 'b')), pool.copy(Buffer.alloc(SIZE, 'c'))];
  assert.notEqual(copies[0]?.buffer, copies[1]?.buffer);
  assert.deepEqual(
    copies.map((copy) => String.fromCharCode(copy[0] ?? 0)),
    ['b', 'c'],
  );
});

test('does not keep a buffer that is not its own', () => {
  const pool = new BufferPool(4 * SIZE);
  const foreign = new Uint8Array(SIZE);
  pool.giveBack(foreign);
  assert.notEqual(pool.copy(Buffer.alloc(SIZE)).buffer, foreign.buffer);
});

test('knows the bytes in use, whether or not it keeps returned buffers', () => {
  const pool = new BufferPool(SIZE);
  const lent = [pool.copy(Buffer.alloc(SIZE - 1)), pool.copy(Buffer.alloc(SIZE))];
  assert.equal(pool.lentBytes, 2 * SIZE);
  for (const copy of lent) pool.giveBack(copy);
  for (const copy of lent) pool.giveBack(copy);
  assert.equal(pool.lentBytes, 0);
});

test('keeps at most the given number of free bytes', () => {
  const pool = new BufferPool(SIZE);
  const lent = [pool.copy(Buffer.alloc(SIZE)), pool.copy(Buffer.alloc(SIZE))];
  for (const copy of lent) pool.giveBack(copy);
  assert.equal(pool.copy(Buffer.alloc(SIZE)).buffer, lent[0]?.buffer);
  assert.notEqual(pool.copy(Buffer.alloc(SIZE)).buffer, lent[1]?.buffer);
});

test('releases buffers that are not needed for a while', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const pool = new BufferPool(4 * SIZE);
  const first = pool.copy(Buffer.alloc(SIZE));
  pool.giveBack(first);
  context.mock.timers.tick(5_000);
  const second = pool.copy(Buffer.alloc(SIZE));
  assert.equal(second.buffer, first.buffer);
  pool.giveBack(second);
  context.mock.timers.tick(10_000);
  assert.notEqual(pool.copy(Buffer.alloc(SIZE)).buffer, first.buffer);
});
