// A FlowListener on a transport that keeps in memory what it is given.
import assert from 'node:assert/strict';
import { createEndpointStats, createMatcher, type Route } from '@weir/model';
import { UdpFlowListener, type UdpFlowListenerOptions } from '../../src/accept/udp-flow-listener.ts';
import { AdmissionController } from '../../src/limits/admission.ts';
import { Shaper } from '../../src/limits/shaper.ts';
import { counterRow, createCounterBlock } from '../../src/metering/counters.ts';
import type { Session } from '../../src/relay/session.ts';
import { SessionSet } from '../../src/relay/session.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';
import type { FlowUpstream, UdpFlow } from '../../src/relay/udp-flow.ts';
import { TenantFlows } from '../../src/relay/udp-flow-table.ts';
import type { UdpTransport } from '../../src/transport/udp-transport.ts';
import { tableFor } from '../fixtures/tables.ts';

const ADDRESS = '127.0.0.1';
export const KEY: string = `UDP/${ADDRESS}/53`;

export interface UdpFlowSetupOptions extends Partial<UdpFlowListenerOptions> {
  /** How many flows a tenant may have; default: enough. */
  readonly perTenant?: number;
  readonly tenant?: string;
}

export interface UdpFlowSetup {
  readonly listener: UdpFlowListener;
  readonly wheel: TimeoutWheel<Session>;
  readonly row: Float64Array;
  open(): string[];
}

export function setUpUdpFlows({
  perTenant = 1_000,
  tenant = 'shop',
  ...given
}: UdpFlowSetupOptions = {}): UdpFlowSetup {
  const { wheel = createTimeoutWheel(), tenants = new TenantFlows<UdpFlow>(perTenant) } = given;
  const row = counterRow([createCounterBlock()], 0);
  const members = new SessionSet<Session>();
  const home = upstreamFor(tenant, { row, members });
  const limits = new AdmissionController();
  const listener = new UdpFlowListener(
    { address: ADDRESS, port: 53, reusePort: true, key: KEY },
    {
      transport: memoryTransport,
      wheel,
      shaper: new Shaper(),
      tenants,
      upstream: () => home,
      admit: (uid) => limits.admit(uid),
      unroutedCounters: () => assert.fail('all of this has a home'),
      terminate: () => undefined,
      onListening: () => undefined,
      onFailed: (code) => assert.fail(code),
      onInternalError: (thrown) => assert.fail(String(thrown)),
      ...given,
    },
  );
  return { listener, wheel, row, open: () => [...members].map((flow) => nameOf(flow as UdpFlow)).sort() };
}

const memoryTransport: UdpTransport = {
  bind: () => ({ send: () => undefined, close: () => undefined }),
  connect: () => ({ send: () => undefined, close: () => undefined }),
};

function upstreamFor(
  tenant: string,
  { row, members: sessions }: { row: Float64Array; members: SessionSet<Session> },
): FlowUpstream {
  const endpoints = [{ address: '10.0.0.1', port: 53 }];
  const table = tableFor({ a: ADDRESS }, [{ name: 'dns', tenant, port: 53, protocol: 'UDP', endpoints }]);
  const [route] = createMatcher(table, 'a').routes.values() as IteratorObject<Route>;
  assert.ok(route !== undefined);
  const load = { ...createEndpointStats({ address: '10.0.0.1', port: 53 }), rank: 0 as const };
  return {
    route,
    sessions,
    service: { counters: row, isSuspended: false, entry: route.service },
    choose: () => load,
    onConnected: () => undefined,
    onConnectFailed: () => undefined,
  };
}

export function createTimeoutWheel(): TimeoutWheel<Session> {
  return new TimeoutWheel<Session>(128);
}

/** So many seconds pass. */
export function advanceSeconds(wheel: TimeoutWheel<Session>, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    wheel.tick();
    for (let member = wheel.takeDue(); member !== undefined; member = wheel.takeDue()) member.onExpired();
  }
}

function nameOf({ address, port }: UdpFlow): string {
  return `${address}|${port}`;
}
