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
        const own = counts[worker] ?? assert.fail();
        const cells = own.cellsOf(client);
        const isOpen = own.tryOpen(cells, MAX_PER_CLIENT);
        assert.equal(isOpen, open.length < MAX_PER_CLIENT);
        if (isOpen) open.push({ worker, cells });
      }
    }),
    { numRuns: 20 },
  );
});

test('connections of a dead worker are no longer counted', () => {
  const { memory, counts } = workers();
  for (let open = 0; open < MAX_PER_CLIENT; open += 1) assert.ok(tryOpen(counts[0], 'a'));
  assert.equal(tryOpen(counts[1], 'a'), false);
  ClientCounts.clearWorker(memory, 0);
  assert.ok(tryOpen(counts[1], 'a'));
});

test('refuses less than 2 % of the allowed connections beside 50,000 other clients', () => {
  const { counts } = workers();
  for (let other = 0; other < 50_000; other += 1) tryOpen(counts[other % WORKERS], `other-${other}`);
  let refused = 0;
  for (let client = 0; client < 1_000; client += 1) {
    for (let open = 0; open < MAX_PER_CLIENT; open += 1) {
      if (!tryOpen(counts[open % WORKERS], `client-${client}`)) refused += 1;
    }
  }
  // About 10 of the 3,000 attempts are expected to be refused. The number varies, because the seed is random.
  assert.ok(refused < 60, `${refused}`);
});

const newConnection = fc.record({
  worker: fc.nat(WORKERS - 1),
  client: fc.constantFrom('a', 'b'),
  gapNs: fc.oneof(fc.constant(0n), fc.bigInt(0n, 400_000_000n), fc.bigInt(0n, 9_000_000_000n)),
});

test('a client opens new connections at most at its rate, and at most twice as many in any second', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(newConnection, { maxLength: 80 }), (rate, attempts) => {
      const { counts } = workers();
      const taken = new Map<string, bigint[]>([
        ['a', []],
        ['b', []],
      ]);
      let now = 70_000_000_000n;
      for (const { worker, client, gapNs } of attempts) {
        now += gapNs;
        const own = counts[worker] ?? assert.fail();
        const times = taken.get(client) ?? assert.fail();
        const inLast = (ns: bigint): number => times.filter((time) => time > now - ns).length;
        const inSecond = inLast(1_000_000_000n);
        const inTwoSeconds = inLast(2_000_000_000n);
        const isTaken = own.tryTakeNew(own.cellsOf(client), rate, now);
        if (isTaken) times.push(now);
        // A client that was within its rate for two seconds is admitted.
        assert.ok(isTaken ? inSecond < 2 * rate : inTwoSeconds >= rate, `${inSecond} at ${rate}`);
      }
      for (const times of taken.values()) {
        const seconds = Number((times.at(-1) ?? now) - (times[0] ?? now)) / 1e9;
        assert.ok(times.length <= rate * (seconds + 2), `${times.length} in ${seconds} s at ${rate}`);
      }
    }),
    { numRuns: 50 },
  );
});

test('a client that always opens new connections gets its rate', () => {
  const { counts } = workers();
  for (const rate of [1, 2, 10]) {
    let taken = 0;
    for (let ms = 0; ms < 20_000; ms += 5) {
      const own = counts[ms % WORKERS] ?? assert.fail();
      if (own.tryTakeNew(own.cellsOf(`at-${rate}`), rate, 70_300_000_000n + BigInt(ms) * 1_000_000n)) taken += 1;
    }
    assert.ok(Math.abs(taken - 20 * rate) <= rate, `${taken} at ${rate}`);
  }
});

test('a rate of 0 refuses every client', () => {
  const [own = assert.fail()] = workers().counts;
  assert.equal(own.tryTakeNew(own.cellsOf('a'), 0, 70_000_000_000n), false);
});

function tryOpen(counts: ClientCounts | undefined, client: string): boolean {
  return counts?.tryOpen(counts.cellsOf(client), MAX_PER_CLIENT) === true;
}

function workers(): { memory: SharedArrayBuffer; counts: ClientCounts[] } {
  const memory = createClientCountsMemory(WORKERS);
  return { memory, counts: Array.from({ length: WORKERS }, (_, slot) => new ClientCounts(memory, slot)) };
}
