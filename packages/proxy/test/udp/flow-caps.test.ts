// The caps that always hold, on a transport that keeps in memory what it is given.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLoad, createMatcher, type Route } from '@weir/model';
import { WorkerLimits } from '../../src/admit/worker-limits.ts';
import { ACTIVE, createSlab, outcomeColumn, RECEIVED, rowOf } from '../../src/counters/columns.ts';
import type { Member } from '../../src/relay/member.ts';
import { Members } from '../../src/relay/members.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';
import { Shaper } from '../../src/shape/shaper.ts';
import type { Flow, FlowHome } from '../../src/udp/flow.ts';
import { FlowListener, type FlowListenerOptions } from '../../src/udp/flow-listener.ts';
import { TenantFlows } from '../../src/udp/tenant-flows.ts';
import type { UdpTransport } from '../../src/udp/transport.ts';
import { tableFor } from '../fixtures/tables.ts';

const ADDRESS = '127.0.0.1';
const BYTES = new Uint8Array(1);

test('a client that has all the flows it may have gets a new one for its longest silent one', () => {
  const { listener, open, wheel, row } = listening({ perTenant: 6 });
  for (const port of [1, 2, 3]) listener.onMessage(BYTES, 'client', port);
  wheel.tick();
  for (const port of [1, 3]) listener.onMessage(BYTES, 'client', port);
  listener.onMessage(BYTES, 'other', 1);
  listener.onMessage(BYTES, 'client', 4);
  assert.deepEqual(open(), ['client|1', 'client|3', 'client|4', 'other|1']);
  assert.deepEqual([row[ACTIVE], row[outcomeColumn('evicted')]], [4, 1]);
});

test('a tenant that has all the flows it may have keeps those that speak, whoever forges new ones', () => {
  const { listener, open, wheel, row } = listening({ perTenant: 5 });
  listener.onMessage(BYTES, 'speaker', 1);
  for (let forged = 0; forged < 1_000; forged += 1) {
    listener.onMessage(BYTES, `forged ${forged}`, 1);
    wheel.tick();
    listener.onMessage(BYTES, 'speaker', 1);
  }
  assert.equal(open().length, 5);
  assert.ok(open().includes('speaker|1'));
  assert.deepEqual([row[ACTIVE], row[outcomeColumn('evicted')]], [5, 996]);
});

test('what limits refuse is counted, opens no flow, and gets its turn when a flow has ended', () => {
  const limits = new WorkerLimits();
  let free = 1;
  const { listener, open, wheel, row } = listening({
    perTenant: 100,
    admit(uid) {
      if (free === 0) return 'connection-limit';
      free -= 1;
      const grant = limits.admit(uid);
      assert.ok(typeof grant !== 'string');
      const release = (): void => {
        free += 1;
      };
      return Object.assign(grant, { release });
    },
  });
  for (const port of [1, 2]) listener.onMessage(BYTES, 'client', port);
  assert.deepEqual([open(), row[outcomeColumn('connection-limit')], row[RECEIVED]], [['client|1'], 1, 1]);
  for (let second = 0; second < 100; second += 1) wheel.tick();
  assert.deepEqual([open(), free], [[], 1]);
  listener.onMessage(BYTES, 'client', 2);
  assert.deepEqual(open(), ['client|2']);
});

test('one tenant at its cap takes nothing from another', () => {
  const wheel = wheelFor();
  const tenants = new TenantFlows<Flow>(2);
  const shop = listening({ perTenant: 2, tenant: 'shop', wheel, tenants });
  const games = listening({ perTenant: 2, tenant: 'games', wheel, tenants });
  games.listener.onMessage(BYTES, 'player', 1);
  for (let buyer = 1; buyer < 50; buyer += 1) shop.listener.onMessage(BYTES, `buyer ${buyer}`, 1);
  assert.deepEqual([shop.open().length, games.open()], [2, ['player|1']]);
});

interface Caps {
  readonly perTenant: number;
  readonly tenant?: string;
  readonly wheel?: TimeoutWheel<Member>;
  readonly tenants?: TenantFlows<Flow>;
  readonly admit?: FlowListenerOptions['admit'];
}

interface Listening {
  readonly listener: FlowListener;
  readonly wheel: TimeoutWheel<Member>;
  readonly row: Float64Array;
  open(): string[];
}

function listening({ perTenant, tenant = 'shop', ...shared }: Caps): Listening {
  const { wheel = wheelFor(), tenants = new TenantFlows<Flow>(perTenant) } = shared;
  const row = rowOf([createSlab()], 0);
  const members = new Members<Member>();
  const home = homeFor(tenant, { row, members });
  const limits = new WorkerLimits();
  const listener = new FlowListener(
    { address: ADDRESS, port: 53, reusePort: true, key: home.route.key },
    {
      transport: memoryTransport,
      wheel,
      shaper: new Shaper(),
      tenants,
      home: () => home,
      admit: shared.admit ?? ((uid) => limits.admit(uid)),
      unrouted: () => assert.fail('all of this has a home'),
      sever: () => undefined,
      onListening: () => undefined,
      onFailed: (code) => assert.fail(code),
      onInternalError: (thrown) => assert.fail(String(thrown)),
    },
  );
  return { listener, wheel, row, open: () => [...members].map((flow) => nameOf(flow as Flow)).sort() };
}

const memoryTransport: UdpTransport = {
  bind: () => ({ send: () => undefined, close: () => undefined }),
  connect: () => ({ send: () => undefined, close: () => undefined }),
};

function homeFor(tenant: string, { row, members }: { row: Float64Array; members: Members<Member> }): FlowHome {
  const endpoints = [{ address: '10.0.0.1', port: 53 }];
  const table = tableFor({ a: ADDRESS }, [{ name: 'dns', tenant, port: 53, protocol: 'UDP', endpoints }]);
  const [route] = createMatcher(table, 'a').routes.values() as IteratorObject<Route>;
  assert.ok(route !== undefined);
  const load = { ...createLoad({ address: '10.0.0.1', port: 53 }), rank: 0 as const };
  return {
    route,
    members,
    group: { row, isCutOff: false, service: route.service },
    choose: () => load,
    onConnected: () => undefined,
    onConnectFailed: () => undefined,
  };
}

function wheelFor(): TimeoutWheel<Member> {
  return new TimeoutWheel<Member>(128, (member) => member.onExpired());
}

function nameOf({ address, port }: Flow): string {
  return `${address}|${port}`;
}
