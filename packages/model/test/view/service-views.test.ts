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

/** What the proxy of a node says when it could bind everything, but for what `report` says of its listeners. */
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
  createdAt: null,
};

describe('the state of a Service', () => {
  test('is Pending until a proxy confirmed every port, then Programmed at the published addresses', () => {
    const fleet = fleetOf(SERVED);
    const waiting = only(serviceViewsFor(fleet));
    assert.deepEqual([waiting.state, waiting.reason, waiting.addresses], ['Pending', 'WaitingForProxy', []]);
    const both = [heartbeatOf(fleet, 'n1'), heartbeatOf(fleet, 'n2')];
    const view = only(serviceViewsFor({ ...fleet, heartbeats: both }));
    assert.deepEqual([view.state, view.reason], ['Programmed', 'Programmed']);
    assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
  });

  test('lists its addresses in the same order, whoever reports first', () => {
    const fleet = fleetOf(SERVED);
    const beats = ['n2', 'n1'].map((name) => heartbeatOf(fleet, name));
    for (const heartbeats of [beats, beats.toReversed()]) {
      const view = only(
        serviceViewsFor({ ...fleet, heartbeats, previousAddresses: new Map([['uid-a-web', ['203.0.113.2']]]) }),
      );
      assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
    }
  });

  test('lists its addresses in order, whatever its nodes are called', () => {
    const nodes = [node('n1', '192.0.2.9'), node('n2', '192.0.2.2')];
    const fleet = fleetOf({ ...SERVED, nodes });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: ['n1', 'n2'].map((name) => heartbeatOf(fleet, name)) }));
    assert.deepEqual(view.addresses, ['192.0.2.2', '192.0.2.9']);
  });

  test('of a family without an ExternalIP the InternalIP is published', () => {
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

  test('a node that could not bind one of the ports is not published', () => {
    const fleet = fleetOf({ services: [service('a/web', { ports: [port(80), port(443)] })] });
    const partly = heartbeatOf(fleet, 'n1');
    const [first, ...rest] = partly.listeners;
    assert.ok(first);
    const failing = { ...partly, listeners: [{ ...first, bound: false, error: 'port in use' }, ...rest] };
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [failing] }));
    assert.deepEqual([view.state, view.reason], ['Pending', 'BindFailed']);
    assert.match(view.message, /n1: port in use/);
  });

  test('served at some of its nodes it is Degraded where a proxy cannot open a port of others, and says which and why', () => {
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

  test('where no node serves all of it any more, what was published stays, and it says so', () => {
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
        'no node serves all ports of this Service, and its published addresses stay: n1: port in use; Weir retries',
      ],
    );
  });

  test('a report for the Service that had the port before does not count', () => {
    const fleet = fleetOf(SERVED);
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1', { service: 'old' })] }));
    assert.equal(view.state, 'Pending');
  });

  test('an address that was published stays while no proxy confirms, and while the store is away', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['192.0.2.1', '192.0.2.99']]]) });
    for (const reachable of [true, false]) {
      const view = only(serviceViewsFor({ ...fleet, reachable }));
      assert.deepEqual([view.state, view.addresses], ['Programmed', ['192.0.2.1']]);
    }
  });

  test('while the fleet settles addresses are added and none is withdrawn', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['203.0.113.2']]]), settling: true });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] }));
    assert.deepEqual(view.addresses, ['192.0.2.1', '203.0.113.2']);
  });

  test('with one of two proxies gone the address of the other remains', () => {
    const fleet = fleetOf(SERVED, { previousAddresses: new Map([['uid-a-web', ['192.0.2.1', '203.0.113.2']]]) });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1')] }));
    assert.deepEqual(view.addresses, ['192.0.2.1']);
  });

  test('a Service that moves keeps the old address until a new node has confirmed, and never one of somebody else', () => {
    const wanting = service('a/web', { annotations: { 'weir.dev/nodes': '1' } });
    const before = fleetOf({ ...SERVED, services: [wanting] });
    const [chosen] = entriesOf(before.table, 'service')[0]?.nodes ?? [];
    const old = chosen === 'n1' ? '203.0.113.2' : '192.0.2.1';
    const moving = { ...before, previousAddresses: new Map([['uid-a-web', [old, '198.51.100.7']]]) };
    assert.deepEqual(only(serviceViewsFor(moving)).addresses, [old]);
    const confirmed = { ...moving, heartbeats: [heartbeatOf(moving, chosen ?? '')] };
    assert.deepEqual(only(serviceViewsFor(confirmed)).addresses, [chosen === 'n1' ? '192.0.2.1' : '203.0.113.2']);
  });

  test('a Service that moves is no longer published where another holds one of its ports by now', () => {
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

  test('is Suspended while a cut-off is in force, with its message, and keeps its address', () => {
    const fleet = fleetOf(SERVED, { suspensions: [CUTOFF] });
    const heartbeats = [heartbeatOf(fleet, 'n1', { listening: false })];
    const view = only(serviceViewsFor({ ...fleet, heartbeats }));
    assert.deepEqual([view.state, view.reason, view.message], ['Suspended', 'SuspendedByOperator', 'too much']);
    assert.deepEqual(view.addresses, ['192.0.2.1']);
    assert.equal(only(serviceViewsFor({ ...fleet, heartbeats, now: 2000 })).state, 'Programmed');
  });

  test('is Refused with the reason when nothing of it is accepted', () => {
    const view = only(serviceViewsFor(fleetOf({ services: [service('a/ssh', { ports: [port(22)] })] })));
    assert.deepEqual([view.state, view.reason, view.addresses], ['Refused', 'PortReserved', []]);
  });

  test('a bad port of a good Service is told beside the others', () => {
    const ports = [port(53, { name: 't' }), port(53, { name: 'u', protocol: 'SCTP' })];
    const view = only(serviceViewsFor(fleetOf({ services: [service('a/dns', { ports })] })));
    assert.deepEqual(
      view.portErrors.map((error) => [error.protocol, error.reason]),
      [['SCTP', 'UnsupportedProtocol']],
    );
  });

  test('without ready endpoints it is Degraded, the gravest reason first and every message there', () => {
    const fleet = fleetOf({ services: [service('a/web', { externalTrafficPolicy: 'Local' })] });
    const view = only(serviceViewsFor({ ...fleet, heartbeats: [heartbeatOf(fleet, 'n1', { listening: false })] }));
    const degraded = view.conditions.find(({ type }) => type === 'Degraded');
    assert.equal(degraded?.reason, 'NoReadyEndpoints');
    assert.match(degraded?.message ?? '', /there is no endpoint.*externalTrafficPolicy/);
    assert.equal(view.state, 'Programmed');
  });
});

test('a table of a hundred thousand entries and more is looked at in one go', () => {
  const fleet = fleetOf(SERVED);
  const listeners = Array.from({ length: 150_000 }, (_, index): Entry => {
    const place = { node: `m${index >> 15}`, address: '192.0.2.9', protocol: 'TCP', port: index & 32_767 } as const;
    return { kind: 'listener', id: listenerId(place), ...place, service: `s${index}` };
  });
  const table = tableOf([...fleet.table.entries.values(), ...listeners]);
  assert.equal(only(serviceViewsFor({ ...fleet, table })).state, 'Pending');
});

test('a tenant is shown with what it has, what it used, and when only the ledger still knows it', () => {
  const row = { service: 'x', tenant: 'gone', namespace: 'gone', name: 'x' };
  const counters = { receivedBytes: 3, sentBytes: 4, connections: 1, requests: 0 };
  const views = tenantViewsFor(fleetOf(SERVED), [{ ...row, counters }]);
  assert.deepEqual(
    views.map(({ name, used }) => [name, used]),
    [
      ['a', { services: 1, ports: 1, trafficThisMonth: 0 }],
      ['gone', { services: 0, ports: 0, trafficThisMonth: 7 }],
    ],
  );
});

test('a node whose proxy is not heard is shown as silent', () => {
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

test('a proxy that cannot be understood is shown with the reason', () => {
  const fleet = fleetOf(SERVED);
  const [view] = proxyViewsFor({ ...fleet, heartbeats: [{ ...heartbeatOf(fleet, 'n1'), unreadable: 'of format 3' }] });
  assert.deepEqual([view?.node, view?.state, view?.message], ['n1', 'Serving', 'of format 3']);
});

test('a proxy whose node is none of the load-balancing nodes says so, and what to do', () => {
  const fleet = fleetOf(SERVED);
  const heartbeats = ['n1', 'n2', 'typo'].map((name) => heartbeatOf(fleet, name));
  const [first, , stray] = proxyViewsFor({ ...fleet, heartbeats });
  assert.deepEqual([first?.state, first?.message], ['Serving', null]);
  assert.equal(stray?.state, 'Stray');
  assert.match(stray?.message ?? '', /node "typo".*kubectl label node typo role=loadbalancer.*WEIR_NODE/);
  const leaving = heartbeats.map((heartbeat) => ({ ...heartbeat, draining: true }));
  assert.equal(proxyViewsFor({ ...fleet, heartbeats: leaving }).at(-1)?.state, 'Draining');
});

test('messages are cut at 1,024 bytes between characters', () => {
  assert.equal(truncateMessage('short'), 'short');
  assert.equal(truncateMessage('x'.repeat(1024)), 'x'.repeat(1024));
  const cut = truncateMessage('é€😀'.repeat(200));
  assert.ok(Buffer.byteLength(cut) <= 1024 && Buffer.byteLength(cut) > 1010);
  assert.ok(cut.endsWith('…') && !cut.includes('\ufffd'));
});
