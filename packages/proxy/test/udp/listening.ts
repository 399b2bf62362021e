// A FlowListener on a transport that keeps in memory what it is given.
import assert from 'node:assert/strict';
import { createLoad, createMatcher, type Route } from '@weir/model';
import { WorkerLimits } from '../../src/admit/worker-limits.ts';
import { createSlab, rowOf } from '../../src/counters/columns.ts';
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
export const KEY: string = `UDP/${ADDRESS}/53`;

export interface ListeningOptions extends Partial<FlowListenerOptions> {
  /** How many flows a tenant may have; default: enough. */
  readonly perTenant?: number;
  readonly tenant?: string;
}

export interface Listening {
  readonly listener: FlowListener;
  readonly wheel: TimeoutWheel<Member>;
  readonly row: Float64Array;
  open(): string[];
}

export function listening({ perTenant = 1_000, tenant = 'shop', ...given }: ListeningOptions = {}): Listening {
  const { wheel = wheelFor(), tenants = new TenantFlows<Flow>(perTenant) } = given;
  const row = rowOf([createSlab()], 0);
  const members = new Members<Member>();
  const home = homeFor(tenant, { row, members });
  const limits = new WorkerLimits();
  const listener = new FlowListener(
    { address: ADDRESS, port: 53, reusePort: true, key: KEY },
    {
      transport: memoryTransport,
      wheel,
      shaper: new Shaper(),
      tenants,
      home: () => home,
      admit: (uid) => limits.admit(uid),
      unrouted: () => assert.fail('all of this has a home'),
      sever: () => undefined,
      onListening: () => undefined,
      onFailed: (code) => assert.fail(code),
      onInternalError: (thrown) => assert.fail(String(thrown)),
      ...given,
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

export function wheelFor(): TimeoutWheel<Member> {
  return new TimeoutWheel<Member>(128);
}

/** So many seconds pass. */
export function pass(wheel: TimeoutWheel<Member>, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    wheel.tick();
    for (let member = wheel.takeDue(); member !== undefined; member = wheel.takeDue()) member.onExpired();
  }
}

function nameOf({ address, port }: Flow): string {
  return `${address}|${port}`;
}
