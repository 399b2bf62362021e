import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferPool } from '../../../src/transport/tcp/write-buffers.ts';

const SIZE = 16_384;

test('a copy holds what was given, and memory that came back is used again', () => {
  const spares = new BufferPool(SIZE);
  const first = spares.copy(Buffer.alloc(SIZE, 'a'));
  spares.giveBack(first);
  const second = spares.copy(Buffer.alloc(SIZE - 1, 'b'));
  assert.equal(Buffer.from(second).toString('latin1'), 'b'.repeat(SIZE - 1));
  assert.equal(second.buffer, first.buffer);
});

test('memory is never lent to two, also when it is given back twice', () => {
  const spares = new BufferPool(4 * SIZE);
  const first = spares.copy(Buffer.alloc(SIZE, 'a'));
  spares.giveBack(first);
  spares.giveBack(first);
  const copies = [spares.copy(Buffer.alloc(SIZE, 'b')), spares.copy(Buffer.alloc(SIZE, 'c'))];
  assert.notEqual(copies[0]?.buffer, copies[1]?.buffer);
  assert.deepEqual(
    copies.map((copy) => String.fromCharCode(copy[0] ?? 0)),
    ['b', 'c'],
  );
});

test('what was not lent is not kept', () => {
  const spares = new BufferPool(4 * SIZE);
  const foreign = new Uint8Array(SIZE);
  spares.giveBack(foreign);
  assert.notEqual(spares.copy(Buffer.alloc(SIZE)).buffer, foreign.buffer);
});

test('it is known how much is in use, whatever is kept of what came back', () => {
  const spares = new BufferPool(SIZE);
  const lent = [spares.copy(Buffer.alloc(SIZE - 1)), spares.copy(Buffer.alloc(SIZE))];
  assert.equal(spares.lentBytes, 2 * SIZE);
  for (const copy of lent) spares.giveBack(copy);
  for (const copy of lent) spares.giveBack(copy);
  assert.equal(spares.lentBytes, 0);
});

test('no more is kept than it may', () => {
  const spares = new BufferPool(SIZE);
  const lent = [spares.copy(Buffer.alloc(SIZE)), spares.copy(Buffer.alloc(SIZE))];
  for (const copy of lent) spares.giveBack(copy);
  assert.equal(spares.copy(Buffer.alloc(SIZE)).buffer, lent[0]?.buffer);
  assert.notEqual(spares.copy(Buffer.alloc(SIZE)).buffer, lent[1]?.buffer);
});

test('what nobody needs for a while is let go', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const spares = new BufferPool(4 * SIZE);
  const first = spares.copy(Buffer.alloc(SIZE));
  spares.giveBack(first);
  context.mock.timers.tick(5_000);
  const second = spares.copy(Buffer.alloc(SIZE));
  assert.equal(second.buffer, first.buffer);
  spares.giveBack(second);
  context.mock.timers.tick(10_000);
  assert.notEqual(spares.copy(Buffer.alloc(SIZE)).buffer, first.buffer);
});
