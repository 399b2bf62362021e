// Checks that at most one Service gets the requests for a host and path at an address and port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  entriesOf,
  listenerId,
  NO_ALLOCATIONS,
  type RoutingTable,
  type ServiceEntry,
  type Snapshot,
  serviceId,
  Translator,
} from '@weir/model';
import fc from 'fast-check';
import { histories, historySettings, nodeSets } from '../../fixtures/arbitrary-history.ts';
import { snapshotOf } from '../../fixtures/snapshot.ts';

/**
 * Returns the owners. The keys are bindings for exclusive listeners, and bindings with a host for shared listeners.
 */
function ownersIn(table: RoutingTable): Map<string, ServiceEntry[]> {
  const owners = new Map<string, ServiceEntry[]>();
  for (const listener of entriesOf(table, 'listener')) {
    const place = listenerId(listener);
    const entry = table.entries.get(serviceId(listener.service)) as ServiceEntry;
    const hosts = entry.settings?.hosts ?? [];
    const keys = listener.shared === true ? hosts.map((host) => `${place} ${host}`) : [place];
    for (const key of keys) owners.set(key, [...(owners.get(key) ?? []), entry]);
  }
  return owners;
}

/** Fails unless the owners of a host at a port share the host by path. */
function assertShared(owners: readonly ServiceEntry[], port: number, key: string): void {
  if (owners.length < 2) return;
  const unique = (values: readonly unknown[]): number => new Set(values.map((value) => JSON.stringify(value))).size;
  const prefixes = owners.map(({ settings }) => settings?.pathPrefix ?? '/');
  assert.equal(unique(owners.map(({ tenant, namespace }) => [tenant, namespace])), 1, `${key}: one namespace`);
  assert.equal(unique(prefixes), owners.length, `${key}: each Service has another path prefix`);
  for (const { settings } of owners) assert.ok(settings?.httpPorts?.includes(port), `${key}: an HTTP port of all`);
  const authorities = owners.map(({ settings }) => {
    const tls = settings?.tls?.ports.some((each) => each.port === port) ? settings.tls : undefined;
    return tls === undefined ? 'no TLS' : tls.clientCaSecret;
  });
  assert.equal(unique(authorities), 1, `${key}: the same TLS and client CAs`);
}

test('shares a host of a binding only by path within a namespace, and never shares an exclusive binding', () => {
  let sharedHosts = 0;
  fc.assert(
    fc.property(histories({ minLength: 1 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
      for (const step of history) {
        snapshot = step(snapshot);
        const { table } = translator.translate(snapshot);
        const owners = ownersIn(table);
        for (const [key, entries] of owners) {
          const [binding = ''] = key.split(' ');
          assertShared(entries, Number(binding.slice(binding.lastIndexOf('/') + 1)), key);
          if (entries.length > 1) sharedHosts += 1;
        }
        for (const listener of entriesOf(table, 'listener')) {
          if (listener.shared === true) assert.ok(!owners.has(listenerId(listener)), listener.id);
        }
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(sharedHosts > 100, `only ${sharedHosts} hosts were shared`);
});

test('shares a host of a pool only by path within a namespace while nodes do not change pools', () => {
  const [, nodes = []] = nodeSets;
  fc.assert(
    fc.property(histories({ minLength: 1 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes });
      for (const step of history) {
        snapshot = { ...step(snapshot), nodes };
        const { table } = translator.translate(snapshot);
        const owners = new Map<string, Map<string, ServiceEntry>>();
        for (const { service: uid, shared, port } of entriesOf(table, 'listener')) {
          const entry = table.entries.get(serviceId(uid)) as ServiceEntry;
          for (const host of shared === true ? (entry.settings?.hosts ?? []) : []) {
            const key = `${port} ${host}`;
            owners.set(key, (owners.get(key) ?? new Map()).set(uid, entry));
          }
        }
        for (const [key, entries] of owners) assertShared([...entries.values()], Number.parseInt(key, 10), key);
      }
    }),
    { numRuns: 200 },
  );
});
