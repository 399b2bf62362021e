import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConnectionState, Store } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { heartbeat, report, suspension } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const MAX_REJECTION_MS = 2_500;

export function connectionContract(subject: StoreUnderTest): void {
  describe(`the connection of ${subject.name}`, () => {
    test('reports the changes to away and ready until the listener is removed', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const states: ConnectionState[] = [];
      const stop = store.onConnectionChange((state) => states.push(state));
      assert.equal(store.connection, 'ready');
      assert.equal(errorCodeOf(store), undefined);
      await world.goAway();
      await isAway(store);
      assert.equal(store.connection, 'away');
      assert.equal(errorCodeOf(store), 'AWAY');
      await world.comeBack();
      assert.equal(store.connection, 'ready');
      assert.equal(errorCodeOf(store), undefined);
      assert.deepEqual(
        states.filter((state) => state !== 'connecting'),
        ['away', 'ready'],
      );
      stop();
      await store.close();
      assert.notEqual(states.at(-1), 'closed');
    });

    test('rejects every call with AWAY within the timeout during an outage, and works afterwards', async () => {
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

    test('ends watchers and rejects every call after close', async () => {
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

function errorCodeOf(store: Store): string | undefined {
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
    beginIncarnation: () => heartbeats.beginIncarnation('n1', 1),
    record: () => heartbeats.record(heartbeat('n1', 1)),
    removeHeartbeat: () => heartbeats.remove('n1', 1),
    listHeartbeats: () => heartbeats.list(),
    flush: () => usage.flush(report([[1, 1]])),
    rows: () => usage.rows('2026-01'),
    periods: () => usage.periods('shop', 'day'),
    exportSeed: () => usage.exportSeed(['2026-01']),
    isSeeded: () => usage.isSeeded(),
    reportedInFull: () => usage.reportedInFull(),
    seed: () => usage.seed({ months: [], bases: [] }),
    fold: () => usage.fold('n1', 1),
    foldGoneServices: () => usage.foldGoneServices(new Set(), 0),
    put: () => suspensions.put(suspension('a')),
    remove: () => suspensions.remove('a'),
    markComplete: () => suspensions.markComplete(),
    readSuspensions: () => suspensions.read(),
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
