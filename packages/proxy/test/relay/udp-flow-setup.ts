// Creates a UdpFlowListener whose transport sends nothing.
import assert from 'node:assert/strict';
import { createMatcher, type Endpoint, type Route } from '@weir/model';
import { UdpFlowListener, type UdpFlowListenerOptions } from '../../src/accept/udp-flow-listener.ts';
import { AccessLog } from '../../src/access-log/access-log.ts';
import { createLogFlag, LogBuffer } from '../../src/access-log/log-buffer.ts';
import { AdmissionController } from '../../src/limits/admission.ts';
import { Shaper } from '../../src/limits/shaper.ts';
import { counterRow, createCounterBlock } from '../../src/metering/counters.ts';
import { ServiceSessions } from '../../src/relay/service-sessions.ts';
import type { Session } from '../../src/relay/session.ts';
import { SessionTerminator } from '../../src/relay/session-terminator.ts';
import { TimeoutWheel } from '../../src/relay/timeout-wheel.ts';
import type { UdpFlow } from '../../src/relay/udp-flow.ts';
import { TenantFlows } from '../../src/relay/udp-flow-table.ts';
import type { UdpTransport } from '../../src/transport/udp-transport.ts';
import { PassiveHealthReporter } from '../../src/upstream/connect-reports.ts';
import { EndpointDrainer } from '../../src/upstream/endpoint-drainer.ts';
import { Upstream } from '../../src/upstream/upstream.ts';
import { tableFor } from '../fixtures/tables.ts';

const ADDRESS = '127.0.0.1';
export const KEY: string = `UDP/${ADDRESS}/53`;

export interface UdpFlowSetupOptions extends Partial<UdpFlowListenerOptions> {
  /** The maximum number of flows of a tenant. The default is higher than any test needs. */
  readonly maxFlowsPerTenant?: number;
  readonly tenant?: string;
  readonly endpoints?: readonly Endpoint[];
}

export interface UdpFlowSetup {
  readonly listener: UdpFlowListener;
  readonly wheel: TimeoutWheel<Session>;
  readonly counters: Float64Array;
  /** The open flows as `address|port`, sorted. */
  openFlows(): string[];
}

export function setUpUdpFlows({
  maxFlowsPerTenant = 1_000,
  tenant = 'shop',
  endpoints = [{ address: '10.0.0.1', port: 53 }],
  ...options
}: UdpFlowSetupOptions = {}): UdpFlowSetup {
  const { wheel = createTimeoutWheel(), tenants = new TenantFlows<UdpFlow>(maxFlowsPerTenant) } = options;
  const counters = counterRow([createCounterBlock()], 0);
  const upstream = upstreamOf(tenant, { counters, endpoints });
  const admission = new AdmissionController();
  const listener = new UdpFlowListener(
    { address: ADDRESS, port: 53, reusePort: true, key: KEY },
    {
      transport: silentTransport,
      wheel,
      shaper: new Shaper(),
      tenants,
      accessLog: createAccessLog(),
      topClients: undefined,
      upstream: () => upstream,
      takeNewFlow: () => true,
      admit: (uid) => admission.admit(uid),
      isServed: () => false,
      unroutedCounters: () => assert.fail('every datagram of these tests has an upstream'),
      terminate: () => undefined,
      onListening: () => undefined,
      onFailed: (code) => assert.fail(code),
      onInternalError: (thrown) => assert.fail(String(thrown)),
      ...options,
    },
  );
  const openFlows = (): string[] => [...upstream.service.sessions].map((flow) => nameOf(flow as UdpFlow)).sort();
  return { listener, wheel, counters, openFlows };
}

/** An access log whose lines go nowhere. */
function createAccessLog(): AccessLog {
  const buffer = new LogBuffer({ flag: createLogFlag(), send: () => undefined });
  return new AccessLog({ node: 'a', buffer, now: () => 0 });
}

const silentTransport: UdpTransport = {
  bind: () => ({ send: () => undefined, flush: () => undefined, takeDropped: () => 0, close: () => undefined }),
  connect: () => ({ send: () => undefined, close: () => undefined }),
};

function upstreamOf(
  tenant: string,
  { counters, endpoints }: { readonly counters: Float64Array; readonly endpoints: readonly Endpoint[] },
): Upstream {
  const table = tableFor({ a: ADDRESS }, [{ name: 'dns', tenant, port: 53, protocol: 'UDP', endpoints }]);
  const [route] = createMatcher(table, 'a').routes.values() as IteratorObject<Route>;
  assert.ok(route !== undefined);
  const failTest = (thrown: unknown): void => assert.fail(String(thrown));
  const drainer = new EndpointDrainer(new SessionTerminator(failTest), failTest);
  return new Upstream(route, {
    service: new ServiceSessions(route.service, counters),
    removedDrainer: drainer,
    unhealthyDrainer: drainer,
    balancerOptions: { random: () => 0, now: () => 0, affinityTable: undefined },
    healthReporter: new PassiveHealthReporter(() => undefined),
    stickyKey: new Uint8Array(32),
  });
}

export function createTimeoutWheel(): TimeoutWheel<Session> {
  return new TimeoutWheel<Session>(128);
}

export function advanceSeconds(wheel: TimeoutWheel<Session>, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    wheel.tick();
    for (let session = wheel.takeDue(); session !== undefined; session = wheel.takeDue()) session.onExpired();
  }
}

function nameOf({ address, port }: UdpFlow): string {
  return `${address}|${port}`;
}
