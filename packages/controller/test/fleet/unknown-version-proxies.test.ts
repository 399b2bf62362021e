import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  apply,
  DEFAULT_FLEET_SETTINGS,
  type Heartbeat,
  type ListenerReport,
  NO_ALLOCATIONS,
  type RoutingTable,
  type Snapshot,
  Translator,
} from '@weir/model';
import { UnknownVersionProxies } from '../../src/fleet/assumed-reports.ts';
import { heartbeat } from '../fixtures/controller-harness.ts';
import { EMPTY_SNAPSHOT, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const NODES = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
const NAMES = ['web', 'api', 'db'];
const unknownVersion = (node: string): Heartbeat => heartbeat(node, [], { unreadable: 'of another version' });
const reportsOf = (node: string, heartbeats: readonly Heartbeat[]): readonly ListenerReport[] =>
  heartbeats.find((each) => each.node === node)?.listeners ?? assert.fail();
const snapshotOf = (services: Snapshot['services'], nodes: Snapshot['nodes'] = NODES): Snapshot => ({
  ...EMPTY_SNAPSHOT,
  nodes,
  services,
  settings: DEFAULT_FLEET_SETTINGS,
});

test('returns the same assumed reports until a report changes', () => {
  const snapshot = snapshotOf(NAMES.map((name, index) => servedAt(name, { port: 80 + index, ips: ['10.0.0.1'] })));
  const { table } = new Translator(DEFAULT_FLEET_SETTINGS, NO_ALLOCATIONS).translate(snapshot);
  const proxies = new UnknownVersionProxies();
  const heartbeats = [unknownVersion('a'), heartbeat('b', [])];
  const reports = reportsOf('a', proxies.withAssumedReports(heartbeats, { table, snapshot }));
  assert.deepEqual(
    reports.map(({ service, listening }) => [service, listening]),
    NAMES.map((name) => [`uid-${name}`, true]),
  );
  assert.equal(reportsOf('a', proxies.withAssumedReports(heartbeats, { table, snapshot })), reports);
  const [endpoints] = [...table.entries.values()].filter(({ kind }) => kind === 'service');
  const later = apply(table, [{ kind: 'delete', id: endpoints?.id ?? '' }]);
  assert.equal(reportsOf('a', proxies.withAssumedReports(heartbeats, { table: later, snapshot })), reports);
});

test('assumes the listeners published for the node, whatever changed before', () => {
  const translator = new Translator(DEFAULT_FLEET_SETTINGS, NO_ALLOCATIONS);
  const proxies = new UnknownVersionProxies();
  for (let step = 0; step < 400; step += 1) {
    // Selects a subset of the items. The subset differs from step to step, and sequences of subsets rarely repeat.
    const some = <T>(all: readonly T[], by: number): T[] => all.filter((_, index) => ((step * by) >> index) % 2 === 1);
    const services = some(NAMES, 3).map((name, index) =>
      servedAt(name, { port: 80 + ((step + index) % 3), ips: some(['10.0.0.1', '10.0.0.2'], 5 + index) }),
    );
    const snapshot = snapshotOf(services, step % 7 === 0 ? NODES.slice(0, 1) : NODES);
    const { table } = translator.translate(snapshot);
    const unknownNodes = some(['a', 'b'], 7);
    const heartbeats = ['a', 'b'].map((node) =>
      unknownNodes.includes(node) ? unknownVersion(node) : heartbeat(node, []),
    );
    const reports = proxies.withAssumedReports(heartbeats, { table, snapshot });
    for (const node of unknownNodes) assert.deepEqual(idsOf(reports, node), expectedAt(node, table, snapshot));
  }
});

function servedAt(
  name: string,
  { port, ips }: { readonly port: number; readonly ips: readonly string[] },
): Snapshot['services'][number] {
  const ports = [{ name: null, port, protocol: 'TCP', appProtocol: null, nodePort: null }];
  return serviceObject(name, { ports, publishedIPs: ips });
}

function idsOf(heartbeats: readonly Heartbeat[], node: string): readonly string[] {
  return reportsOf(node, heartbeats)
    .map(({ id }) => id)
    .sort();
}

/** Computes the expected reports from scratch, as a reference. */
function expectedAt(name: string, { entries }: RoutingTable, { services }: Snapshot): readonly string[] {
  const addresses = [...entries.values()].flatMap((entry) =>
    entry.kind === 'node' && entry.name === name ? entry.publishedAddresses : [],
  );
  const found = [...entries.values()].flatMap((entry) => {
    if (entry.kind !== 'listener' || entry.node !== name) return [];
    const service = services.find(({ uid }) => uid === entry.service);
    return service?.publishedIPs.some((address) => addresses.includes(address)) === true ? [entry.id] : [];
  });
  return found.sort();
}
