import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConnectionState, Store } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { cutoff, heartbeat, report } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const MAX_REJECTION_MS = 2_500;

export function connectionContract(subject: StoreUnderTest): void {
  describe(`the connection of ${subject.name}`, () => {
    test('is ready, away and ready again, and each change is told until one stops listening', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const told: ConnectionState[] = [];
      const stop = store.onConnectionChange((state) => told.push(state));
      assert.equal(store.connection, 'ready');
      assert.equal(problemOf(store), undefined);
      await world.goAway();
      await isAway(store);
      assert.equal(store.connection, 'away');
      assert.equal(problemOf(store), 'AWAY');
      await world.comeBack();
      assert.equal(store.connection, 'ready');
      assert.equal(problemOf(store), undefined);
      assert.deepEqual(
        told.filter((state) => state !== 'connecting'),
        ['away', 'ready'],
      );
      stop();
      await store.close();
      assert.notEqual(told.at(-1), 'closed');
    });

    test('every call rejects as away, soon, while the store is, and works after it', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.usage.seed({ months: [], bases: [] });
      await world.goAway();
      const started = performance.now();
      await Promise.all(Object.entries(callsOf(store)).map(([name, call]) => rejectsAsAway(name, call)));
      assert.ok(performance.now() - started < MAX_REJECTION_MS);
      await world.comeBack();
      for (const call of Object.values(callsOf(store))) await call();
    });

    test('closed is the end: every call rejects, and what follows or watches ends or rejects', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { signal } = new AbortController();
      const states = store.suspensions.watch(signal)[Symbol.asyncIterator]();
      await states.next();
      const ending = states.next().then(
        ({ done }) => assert.equal(done, true),
        (error: unknown) => assert.ok(error instanceof StoreError && error.code === 'AWAY'),
      );
      await store.close();
      await store.close();
      assert.equal(store.connection, 'closed');
      await ending;
      await Promise.all(Object.entries(callsOf(store)).map(([name, call]) => rejectsAsAway(name, call)));
    });
  });
}

function problemOf(store: Store): string | undefined {
  return store.connectionError?.code;
}

function callsOf({ table, heartbeats, usage, suspensions }: Store): Record<string, () => Promise<unknown>> {
  const position = { epoch: 1, revision: 0, id: 'x' };
  return {
    claimLeader: () => table.claimLeader(),
    meta: () => table.meta(),
    openEpoch: () => table.openEpoch({ leader: 1, id: 'x' }),
    publish: () => table.publish({ leader: 1, predecessor: position, id: 'y', changes: [], complete: true }),
    readTable: () => table.read(),
    beginLife: () => heartbeats.beginIncarnation('n1', 1),
    beat: () => heartbeats.record(heartbeat('n1', 1)),
    leave: () => heartbeats.remove('n1', 1),
    listHeartbeats: () => heartbeats.list(),
    flush: () => usage.flush(report([[1, 1]])),
    rows: () => usage.rows('2026-01'),
    periods: () => usage.periods('shop', 'day'),
    copy: () => usage.exportSeed(['2026-01']),
    isSeeded: () => usage.isSeeded(),
    seed: () => usage.seed({ months: [], bases: [] }),
    fold: () => usage.fold('n1', 1),
    put: () => suspensions.put(cutoff('a')),
    remove: () => suspensions.remove('a'),
    complete: () => suspensions.markComplete(),
    readCutoffs: () => suspensions.read(),
  };
}

async function rejectsAsAway(name: string, call: () => Promise<unknown>): Promise<void> {
  await assert.rejects(call(), (error) => error instanceof StoreError && error.code === 'AWAY', name);
}

async function isAway(store: Store): Promise<void> {
  if (store.connection === 'away') return;
  await new Promise<void>((resolve) => {
    const stop = store.onConnectionChange((state) => {
      if (state !== 'away') return;
      stop();
      resolve();
    });
  });
}
