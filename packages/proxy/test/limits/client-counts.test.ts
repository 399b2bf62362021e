import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ClientCells, ClientCounts, createClientCountsMemory } from '../../src/limits/client-counts.ts';

const WORKERS = 2;
const MAX_PER_CLIENT = 3;

test('a client opens connections up to the cap over all workers, and not more', () => {
  const step = fc.record({
    worker: fc.nat(WORKERS - 1),
    client: fc.constantFrom('a', 'b', 'c'),
    closes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { counts } = workers();
      const openByClient = new Map<string, { worker: number; cells: ClientCells }[]>();
      for (const { worker, client, closes } of steps) {
        const open = openByClient.get(client) ?? [];
        openByClient.set(client, open);
        if (closes) {
          const last = open.pop();
          if (last !== undefined) counts[last.worker]?.close(last.cells);
          continue;
        }
        const cells = counts[worker]?.tryOpen(client, MAX_PER_CLIENT);
        assert.equal(cells !== undefined, open.length < MAX_PER_CLIENT);
        if (cells !== undefined) open.push({ worker, cells });
      }
    }),
    { numRuns: 20 },
  );
});

test('connections of a dead worker are no longer counted', () => {
  const { memory, counts } = workers();
  for (let open = 0; open < MAX_PER_CLIENT; open += 1) assert.ok(counts[0]?.tryOpen('a', MAX_PER_CLIENT));
  assert.equal(counts[1]?.tryOpen('a', MAX_PER_CLIENT), undefined);
  ClientCounts.clearWorker(memory, 0);
  assert.ok(counts[1]?.tryOpen('a', MAX_PER_CLIENT));
});

test('refuses less than 2 % of the allowed connections beside 50,000 other clients', () => {
  const { counts } = workers();
  for (let other = 0; other < 50_000; other += 1) counts[other % WORKERS]?.tryOpen(`other-${other}`, 10);
  let refused = 0;
  for (let client = 0; client < 1_000; client += 1) {
    for (let open = 0; open < MAX_PER_CLIENT; open += 1) {
      if (counts[open % WORKERS]?.tryOpen(`client-${client}`, MAX_PER_CLIENT) === undefined) refused += 1;
    }
  }
  // About 10 of the 3,000 attempts are expected to be refused. The number varies, because the seed is random.
  assert.ok(refused < 60, `${refused}`);
});

function workers(): { memory: SharedArrayBuffer; counts: ClientCounts[] } {
  const memory = createClientCountsMemory(WORKERS);
  return { memory, counts: Array.from({ length: WORKERS }, (_, slot) => new ClientCounts(memory, slot)) };
}
