import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ClientCells, ClientCounts, createClientCountsMemory } from '../../src/limits/client-counts.ts';

const WORKERS = 2;
const MAX_PER_CLIENT = 3;

test('no client has more than the cap over all workers, and each that is alone has all of it', () => {
  const step = fc.record({
    worker: fc.nat(WORKERS - 1),
    client: fc.constantFrom('a', 'b', 'c'),
    closes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { counts } = workers();
      const open = new Map<string, { worker: number; mark: ClientCells }[]>();
      for (const { worker, client, closes } of steps) {
        const mine = open.get(client) ?? [];
        open.set(client, mine);
        if (closes) {
          const last = mine.pop();
          if (last !== undefined) counts[last.worker]?.close(last.mark);
          continue;
        }
        const mark = counts[worker]?.tryOpen(client, MAX_PER_CLIENT);
        assert.equal(mark !== undefined, mine.length < MAX_PER_CLIENT);
        if (mark !== undefined) mine.push({ worker, mark });
      }
    }),
    { numRuns: 20 },
  );
});

test('what a dead worker had does not count any more', () => {
  const { memory, counts } = workers();
  for (let open = 0; open < MAX_PER_CLIENT; open += 1) assert.ok(counts[0]?.tryOpen('a', MAX_PER_CLIENT));
  assert.equal(counts[1]?.tryOpen('a', MAX_PER_CLIENT), undefined);
  ClientCounts.clearWorker(memory, 0);
  assert.ok(counts[1]?.tryOpen('a', MAX_PER_CLIENT));
});

test('among 50,000 others hardly anybody is refused what he may have', () => {
  const { counts } = workers();
  for (let other = 0; other < 50_000; other += 1) counts[other % WORKERS]?.tryOpen(`other-${other}`, 10);
  let refused = 0;
  for (let client = 0; client < 1_000; client += 1) {
    for (let open = 0; open < MAX_PER_CLIENT; open += 1) {
      if (counts[open % WORKERS]?.tryOpen(`client-${client}`, MAX_PER_CLIENT) === undefined) refused += 1;
    }
  }
  // 10 are to be expected; the seed is random.
  assert.ok(refused < 60, `${refused}`);
});

function workers(): { memory: SharedArrayBuffer; counts: ClientCounts[] } {
  const memory = createClientCountsMemory(WORKERS);
  return { memory, counts: Array.from({ length: WORKERS }, (_, column) => new ClientCounts(memory, column)) };
}
