import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListenerReport } from '@weir/model';
import { chunkListeners } from '../../src/redis/listener-chunks.ts';

test('of 20,000 listeners one that changes, comes or goes is another chunk of some 100, and the others stay', () => {
  const listeners = Array.from({ length: 20_000 }, (_, index) => report(index));
  const before = chunkListeners(listeners, undefined);
  assert.equal(before.chunks.flatMap(({ reports }) => reports).length, 20_000);
  assert.ok(
    before.chunks.every(({ reports }) => reports.length < 200),
    'chunks are of about the wanted size',
  );
  const edits: readonly (readonly ListenerReport[])[] = [
    listeners.with(70, { ...report(70), listening: false }),
    [...listeners, report(20_000)],
    listeners.toSpliced(300, 1),
  ];
  for (const edited of edits) {
    const after = chunkListeners(edited, before);
    const others = after.chunks.filter((chunk, index) => chunk !== before.chunks[index]);
    assert.equal(others.length, 1);
    assert.notEqual(after.root, before.root);
  }
});

test('the same reports in another list are the same chunks', () => {
  const before = chunkListeners([report(1), report(2)], undefined);
  const after = chunkListeners([report(1), report(2)], before);
  assert.equal(after.root, before.root);
  assert.equal(after.chunks[0], before.chunks[0]);
});

test('no listeners are one empty chunk, and the number of chunks follows their number without flapping', () => {
  const counts: number[] = [];
  let chunks = chunkListeners([], undefined);
  for (const size of [0, 100, 200, 201, 200, 100, 60, 49, 3_000, 0]) {
    chunks = chunkListeners(
      Array.from({ length: size }, (_, index) => report(index)),
      chunks,
    );
    counts.push(chunks.chunks.length);
  }
  assert.deepEqual(counts, [1, 1, 1, 4, 4, 4, 1, 1, 32, 1]);
});

function report(index: number): ListenerReport {
  return { id: `listener/n/10.0.0.1/TCP/${index}`, service: `u${index}`, bound: true, listening: true, error: null };
}
