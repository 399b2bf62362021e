// Checks that at most one Service gets the clients that request a host at an address and port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  entriesOf,
  listenerId,
  NO_ALLOCATIONS,
  type RoutingTable,
  type Snapshot,
  serviceId,
  Translator,
} from '@weir/model';
import fc from 'fast-check';
import { historySettings, nodeSets, snapshotSteps } from '../../fixtures/arbitrary-history.ts';
import { snapshotOf } from '../../fixtures/snapshot.ts';

/** Returns the UIDs of the owners. The keys are bindings for exclusive listeners, and bindings with a host for shared listeners. */
function ownersIn(table: RoutingTable): Map<string, string[]> {
  const owners = new Map<string, string[]>();
  for (const listener of entriesOf(table, 'listener')) {
    const place = listenerId(listener);
    const keys =
      listener.shared === true ? hostsOf(table, listener.service).map((host) => `${place} ${host}`) : [place];
    for (const key of keys) owners.set(key, [...(owners.get(key) ?? []), listener.service]);
  }
  return owners;
}

function hostsOf(table: RoutingTable, uid: string): readonly string[] {
  const entry = table.entries.get(serviceId(uid));
  return (entry?.kind === 'service' && entry.settings?.hosts) || [];
}

test('gives each host of a binding one owner, and never shares an exclusive binding', () => {
  fc.assert(
    fc.property(fc.array(snapshotSteps, { minLength: 1, maxLength: 12 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
      for (const step of history) {
        snapshot = step(snapshot);
        const { table } = translator.translate(snapshot);
        const owners = ownersIn(table);
        for (const [key, uids] of owners) assert.equal(uids.length, 1, `${key} is had by ${uids.join()}`);
        for (const listener of entriesOf(table, 'listener')) {
          if (listener.shared === true) assert.ok(!owners.has(listenerId(listener)), listener.id);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('gives each host of a pool one owner while nodes do not change pools', () => {
  const [, nodes = []] = nodeSets;
  fc.assert(
    fc.property(fc.array(snapshotSteps, { minLength: 1, maxLength: 12 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes });
      for (const step of history) {
        snapshot = { ...step(snapshot), nodes };
        const { table } = translator.translate(snapshot);
        const owners = new Map<string, string>();
        for (const { service: uid, shared, port } of entriesOf(table, 'listener')) {
          for (const host of shared === true ? hostsOf(table, uid) : []) {
            const key = `${port} ${host}`;
            assert.equal(owners.get(key) ?? uid, uid, key);
            owners.set(key, uid);
          }
        }
      }
    }),
    { numRuns: 200 },
  );
});
