import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Entry,
  entriesOf,
  type FleetState,
  type Heartbeat,
  listenerId,
  NO_ALLOCATIONS,
  proxyViewsFor,
  type ServiceView,
  ServiceViewTracker,
  type Snapshot,
  type Suspension,
  serviceViewsFor,
  tableOf,
  tenantViewsFor,
  translate,
  truncateMessage,
} from '@weir/model';
import { node, port, service, slice, snapshotOf } from '../fixtures/snapshot.ts';

const NODES = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2', { externalIPs: ['203.0.113.2'] })];

function fleetOf(parts: Partial<Snapshot>, fleet: Partial<FleetState> = {}): FleetState {
  const { table } = translate(snapshotOf({ nodes: NODES, ...parts }), NO_ALLOCATIONS);
  return { table, heartbeats: [], suspensions: [], now: 1000, previousAddresses: new Map(), reachable: true, ...fleet };
}

/** Returns the heartbeat of a proxy that has bound all listeners of its node. `report` replaces fields of each listener. */
function heartbeatOf(fleet: FleetState, name: string, report: Partial<Heartbeat['listeners'][number]> = {}): Heartbeat {
  const own = entriesOf(fleet.table, 'listener').filter((listener) => listener.node === name);
  return {
    node: name,
    life: 1,
    version: '0',
    startedAt: 0,
    draining: false,
    addresses: [],
    applied: null,
    cutoffSequence: 0,
    listeners: own.map(({ id, service }) => ({ id, service, bound: true, listening: true, error: null, ...report })),
    workers: 1,
    connections: 0,
  };
}

function only(views: readonly ServiceView[]): ServiceView {
  assert.equal(views.length, 1);
  return views[0] ?? assert.fail();
}

const SERVED = { services: [service('a/web')], slices: [slice('a/web', ['10.0.0.1'])] };
const CUTOFF: Suspension = {
  uid: 'c1',
  name: 'stop',
  target: { kind: 'tenant', tenant: 'a' },
  message: 'too much',
  until: 2000,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: Date.UTC(2026, 0, 31, 18),
  madeBy: 'alice',
};

describe('the state of a Service', () => {
  test('is FleetUnreachable while the store refuses the table, unless the Service has an address', () => {
    const fleet = { ...fleetOf(SERVED), unpublished: true };
    assert.equal(only(serviceViewsFor(fleet)).reason, 'FleetUnreachable');
    const served = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] }));
    assert.deepEqual([served.reason, served.addresses], ['Programmed', ['192.0.2.1']]);
    const tracker = new ServiceViewTracker();
    assert.equal(only(tracker.update(fleet)).reason, 'FleetUnreachable');
    assert.equal(only(tracker.update({ ...fleet, unpublished: false })).reason, 'WaitingForProxy');
  });

  test('is Pending until a proxy confirms every port, then Programmed at the published addresses', () => {
    const fleet = fleetOf(SERVED);
    const waiting = only(serviceViewsFor(fleet));
    assert.deepEqual([waiting.state, waiting.reason, waiting.addresses], ['Pending', 'WaitingForProxy', []]);
    const both = [heartbeatOf(fleet, 'n1'), heartbeatOf(fleet, 'n2')];
    const view = only(serviceViewsFor({ ...fleet, heartbeats: both }));
    assert.deepEqual([view.state, view.reason], ['Programmed', 'Programmed']);
    assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
  });

  test('lists addresses in the same order, whichever proxy reports first', () => {
    const fleet = fleetOf(SERVED);
    const beats = ['n2', 'n1'].map((name) => heartbeatOf(fleet, name));
    for (const heartbeats of [beats, beats.toReversed()]) {
      const view = only(
        serviceViewsFor({ ...fleet, heartbeats, previousAddresses: new Map([['uid-a-web', ['203.0.113.2']]]) }),
      );
      assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
    }
  });

  test('sorts addresses independently of the names of nodes', () => {
    const nodes = [node('n1', '192.0.2.9'), node('n2', '192.0.2.2')];
    const fleet = fleetOf({ ...SERVED, nodes });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: ['n1', 'n2'].map((name) => heartbeatOf(fleet, name)) }));
    assert.deepEqual(view.addresses, ['192.0.2.2', '192.0.2.9']);
  });

  test('publishes the InternalIP of a family without an ExternalIP', () => {
    const [outside, inside] = ['203.0.113.3', '2001:db8::3'];
    const nodes = [node('n3', '192.0.2.3', { internalIPs: ['192.0.2.3', inside], externalIPs: [outside] })];
    for (const [ipFamilies, addresses] of [
      [['IPv6'], [inside]],
      [['IPv4'], [outside]],
      [
        ['IPv4', 'IPv6'],
        [inside, outside],
      ],
    ] as const) {
      const fleet = fleetOf({ nodes, services: [service('a/web', { ipFamilies })] });
      const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n3')] }));
      assert.deepEqual([view.state, view.addresses], ['Programmed', addresses]);
    }
  });

  test('does not publish a node that could not bind one of the ports', () => {
    const fleet = fleetOf({ services: [service('a/web', { ports: [port(80), port(443)] })] });
    const partly = heartbeatOf(fleet, 'n1');
    const [first, ...rest] = partly.listeners;
    assert.ok(first);
    const failing = { ...partly, listeners: [{ ...first, bound: false, error: 'port in use' }, ...rest] };
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [failing] }));
    assert.deepEqual([view.state, view.reason], ['Pending', 'BindFailed']);
    assert.match(view.message, /n1: port in use/);
  });

  test('is Degraded if some nodes cannot open a port, with the nodes and the reason', () => {
    const fleet = fleetOf(SERVED);
    const failing = heartbeatOf(fleet, 'n2', { bound: false, listening: false, error: 'port in use' });
    const degraded = (heartbeats: readonly Heartbeat[]): string | undefined => {
      const view = only(serviceViewsFor({ ...fleet, heartbeats }));
      assert.deepEqual([view.state, view.addresses[0]], ['Programmed', '192.0.2.1']);
      const condition = view.conditions.find(({ type }) => type === 'Degraded');
      return condition && `${condition.reason}: ${condition.message}`;
    };
    assert.equal(
      degraded([heartbeatOf(fleet, 'n1'), failing]),
      'FewerNodes: some nodes do not serve this Service: n2: port in use; Weir retries',
    );
    assert.equal(degraded([heartbeatOf(fleet, 'n1'), heartbeatOf(fleet, 'n2')]), undefined);
    assert.equal(degraded([heartbeatOf(fleet, 'n1')]), undefined, 'who is only not heard may start, or reboot');
  });

  test('keeps its published addresses with a message if no node serves all ports any more', () => {
    const fleet = fleetOf(SERVED);
    const failing = heartbeatOf(fleet, 'n1', { bound: false, listening: false, error: 'port in use' });
    const uid = only(serviceViewsFor(fleet)).uid;
    const previousAddresses = new Map([[uid, ['192.0.2.1']]]);
    const view = only(serviceViewsFor({ ...fleet, previousAddresses, heartbeats: [failing] }));
    const degraded = view.conditions.find(({ type }) => type === 'Degraded');
    assert.deepEqual(
      [view.state, view.addresses, degraded?.message],
      [
        'Programmed',
        ['192.0.2.1'],
        'no node serves all ports of this Service, but its addresses stay published so that clients can reach some ports: n1: port in use; Weir retries',
      ],
    );
  });

  test('ignores a report for the former Service of a port', () => {
    const fleet = fleetOf(SERVED);
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1', { service: 'old' })] }));
    assert.equal(view.state, 'Pending');
  });

  test('keeps published addresses while no proxy confirms or the store is unreachable', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['192.0.2.1', '192.0.2.99']]]) });
    for (const reachable of [true, false]) {
      const view = only(serviceViewsFor({ ...fleet, reachable }));
      assert.deepEqual([view.state, view.addresses], ['Programmed', ['192.0.2.1']]);
    }
  });

  test('adds addresses but withdraws none while the fleet settles', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['203.0.113.2']]]), settling: true });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] }));
    assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
  });

  test('keeps the address of one proxy when the other stops', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['192.0.2.1', '203.0.113.2']]]) });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] }));
    assert.deepEqual(view.addresses, ['192.0.2.1']);
  });

  test('keeps the old address of a moving Service until a new node confirms, but no foreign address', () => {
    const wanting = service('a/web', { annotations: { 'weir.dev/nodes': '1' } });
    const before = fleetOf({ ...SERVED, services: [wanting] });
    const [chosen] = entriesOf(before.table, 'service')[0]?.nodes ?? [];
    const old = chosen === 'n1' ? '203.0.113.2' : '192.0.2.1';
    const moving = { ...before, previousAddresses: new Map([['uid-a-web', [old, '198.51.100.7']]]) };
    assert.deepEqual(only(serviceViewsFor(moving)).addresses, [old]);
    const confirmed = { ...moving, heartbeats: [heartbeatOf(moving, chosen ?? '')] };
    assert.deepEqual(only(serviceViewsFor(confirmed)).addresses, [chosen === 'n1' ? '192.0.2.1' : '203.0.113.2']);
  });

  test('withdraws the address of a moving Service when another Service gets its port', () => {
    const moves = service('a/web', { annotations: { 'weir.dev/nodes': '1' }, createdAt: 1 });
    const chosen = entriesOf(fleetOf({ ...SERVED, services: [moves] }).table, 'service')[0]?.nodes[0];
    const [left, address] = chosen === 'n1' ? ['n2', '203.0.113.2'] : ['n1', '192.0.2.1'];
    const published = (number: number): readonly string[] | undefined => {
      const other = service('b/api', { ports: [port(number)], annotations: { 'weir.dev/nodes': '2' }, createdAt: 2 });
      const fleet = fleetOf(
        { ...SERVED, services: [moves, other] },
        { previousAddresses: new Map([['uid-a-web', [address]]]) },
      );
      const isThere = entriesOf(fleet.table, 'listener').some(
        ({ service, node }) => service === 'uid-b-api' && node === left,
      );
      assert.equal(isThere, true);
      return serviceViewsFor(fleet).find(({ uid }) => uid === 'uid-a-web')?.addresses;
    };
    assert.deepEqual(published(81), [address]);
    assert.deepEqual(published(80), []);
  });

  test('is Suspended while a suspension is in force, with its message, author and end, and keeps its address', () => {
    const TEXT = 'too much (suspended 2026-01-31T18:00:00Z by alice, until 1970-01-01T00:00:02Z)';
    const fleet = fleetOf(SERVED, { suspensions: [CUTOFF] });
    const heartbeats = [heartbeatOf(fleet, 'n1', { listening: false })];
    const view = only(serviceViewsFor({ ...fleet, heartbeats }));
    assert.deepEqual([view.state, view.reason, view.message], ['Suspended', 'SuspendedByOperator', TEXT]);
    assert.deepEqual(view.addresses, ['192.0.2.1']);
    assert.equal(only(serviceViewsFor({ ...fleet, heartbeats, now: 2000 })).state, 'Programmed');
  });

  test('is Refused with the reason if the Service is not accepted', () => {
    const view = only(serviceViewsFor(fleetOf({ services: [service('a/ssh', { ports: [port(22)] })] })));
    assert.deepEqual([view.state, view.reason, view.addresses], ['Refused', 'PortReserved', []]);
    const condition = view.conditions.find(({ type }) => type === 'Programmed');
    assert.deepEqual([condition?.status, condition?.reason], ['False', 'NotAccepted']);
  });

  test('reports a refused port of an accepted Service together with the served ports', () => {
    const ports = [port(53, { name: 't' }), port(53, { name: 'u', protocol: 'SCTP' })];
    const view = only(serviceViewsFor(fleetOf({ services: [service('a/dns', { ports })] })));
    assert.deepEqual(
      view.portErrors.map((error) => [error.protocol, error.reason]),
      [['SCTP', 'UnsupportedProtocol']],
    );
  });

  test('is Degraded without ready endpoints, with the most severe reason and every message', () => {
    const fleet = fleetOf({ services: [service('a/web', { externalTrafficPolicy: 'Local' })] });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1', { listening: false })] }));
    const degraded = view.conditions.find(({ type }) => type === 'Degraded');
    assert.equal(degraded?.reason, 'NoReadyEndpoints');
    assert.match(degraded?.message ?? '', /there is no endpoint.*externalTrafficPolicy/);
    assert.equal(view.state, 'Programmed');
  });
});

test('computes the views of a table with more than 100,000 entries', () => {
  const fleet = fleetOf(SERVED);
  const listeners = Array.from({ length: 150_000 }, (_, index): Entry => {
    const place = { node: `m${index >> 15}`, address: '192.0.2.9', protocol: 'TCP', port: index & 32_767 } as const;
    return { kind: 'listener', id: listenerId(place), ...place, service: `s${index}` };
  });
  const table = tableOf([...fleet.table.entries.values(), ...listeners]);
  assert.equal(only(serviceViewsFor({ ...fleet, table })).state, 'Pending');
});

test('tenant views show Services, ports and usage, also of tenants that only the ledger knows', () => {
  const row = { service: 'x', tenant: 'gone', namespace: 'gone', name: 'x' };
  const counters = { receivedBytes: 3, sentBytes: 4, connections: 1, requests: 0 };
  const views = tenantViewsFor(fleetOf(SERVED), [{ ...row, counters }]);
  assert.deepEqual(
    views.map(({ name, used }) => [name, used]),
    [
      ['a', { services: 1, ports: 2, trafficThisMonth: 0 }],
      ['gone', { services: 0, ports: 0, trafficThisMonth: 7 }],
    ],
  );
});

test('proxy views show a node without heartbeats as Silent', () => {
  const fleet = fleetOf(SERVED);
  const views = proxyViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] });
  assert.deepEqual(
    views.map(({ node: name, state, listeners }) => [name, state, listeners.listening]),
    [
      ['n1', 'Serving', 1],
      ['n2', 'Silent', 0],
    ],
  );
});

test('proxy views show why a heartbeat cannot be decoded', () => {
  const fleet = fleetOf(SERVED);
  const [view] = proxyViewsFor({ ...fleet, heartbeats: [{ ...heartbeatOf(fleet, 'n1'), unreadable: 'of format 3' }] });
  assert.deepEqual([view?.node, view?.state, view?.message], ['n1', 'Serving', 'of format 3']);
});

test('proxy views show the transport of each proxy, and null for a version that does not report it', () => {
  const fleet = fleetOf(SERVED);
  const heartbeats = [{ ...heartbeatOf(fleet, 'n1'), transport: 'syscalls' }, heartbeatOf(fleet, 'n2')];
  const views = proxyViewsFor({ ...fleet, heartbeats });
  assert.deepEqual(
    views.map(({ transport }) => transport),
    ['syscalls', null],
  );
});

test('proxy views show a proxy on another node as Stray, with what to do', () => {
  const fleet = fleetOf(SERVED);
  const heartbeats = ['n1', 'n2', 'typo'].map((name) => heartbeatOf(fleet, name));
  const [first, , stray] = proxyViewsFor({ ...fleet, heartbeats });
  assert.deepEqual([first?.state, first?.message], ['Serving', null]);
  assert.equal(stray?.state, 'Stray');
  assert.match(stray?.message ?? '', /node "typo".*kubectl label node typo role=loadbalancer.*WEIR_NODE/);
  const leaving = heartbeats.map((heartbeat) => ({ ...heartbeat, draining: true }));
  assert.equal(proxyViewsFor({ ...fleet, heartbeats: leaving }).at(-1)?.state, 'Draining');
});

test('truncateMessage cuts at 1,024 bytes between characters', () => {
  assert.equal(truncateMessage('short'), 'short');
  assert.equal(truncateMessage('x'.repeat(1024)), 'x'.repeat(1024));
  const cut = truncateMessage('é€😀'.repeat(200));
  assert.ok(Buffer.byteLength(cut) <= 1024 && Buffer.byteLength(cut) > 1010);
  assert.ok(cut.endsWith('…') && !cut.includes('\ufffd'));
});
