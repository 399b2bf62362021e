import { networkInterfaces } from 'node:os';
import {
  compileNetworks,
  type Heartbeat,
  MAX_REPORTED_UNHEALTHY_ENDPOINTS,
  servicePortOf,
  type UnhealthyEndpoint,
  type UnhealthyReport,
} from '@weir/model/data-plane';
import { type Clock, type Logger, Loop } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';
import type { HealthMonitor } from '../upstream/health/health-monitor.ts';

const HEARTBEAT_INTERVAL_MS = 1_000;
/** The minimum time between two heartbeats that events trigger. */
const MIN_HEARTBEAT_GAP_MS = 20;

export interface HeartbeatLoopOptions {
  readonly store: HeartbeatStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the heartbeat to send; undefined while this incarnation has no number. */
  readonly heartbeat: () => Heartbeat | undefined;
}

/** Sends a heartbeat every second, and soon after `trigger`. */
export function createHeartbeatLoop({ store, clock, log, heartbeat }: HeartbeatLoopOptions): Loop {
  return new Loop({
    async run() {
      const now = heartbeat();
      if (now !== undefined) await store.record(now);
    },
    gapMs: MIN_HEARTBEAT_GAP_MS,
    resyncMs: HEARTBEAT_INTERVAL_MS,
    retryMs: [HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS],
    clock,
    onError: (error) => log.debug({ err: error }, 'failed to record the heartbeat; retrying'),
  });
}

/**
 * Returns the unhealthy endpoints, or undefined if all endpoints are healthy. The report has a maximum size, so
 * endpoints are taken from the ports in turn. Many endpoints of one Service therefore do not crowd out the endpoints of
 * another Service.
 */
export function unhealthyReportFor(health: Pick<HealthMonitor, 'unhealthy'>): UnhealthyReport | undefined {
  const ports = [...health.unhealthy()];
  const total = ports.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
  if (total === 0) return undefined;
  const reported: UnhealthyEndpoint[] = [];
  for (let index = 0; reported.length < Math.min(total, MAX_REPORTED_UNHEALTHY_ENDPOINTS); index += 1) {
    for (const { route, endpoints } of ports) {
      const endpoint = endpoints[index];
      if (endpoint === undefined || reported.length === MAX_REPORTED_UNHEALTHY_ENDPOINTS) continue;
      const { service, listener } = route;
      reported.push({ service: service.uid, protocol: listener.protocol, port: servicePortOf(listener), ...endpoint });
    }
  }
  return { total, endpoints: reported };
}

/** Returns the given addresses that exist on this host. A loopback interface has every address of its network. */
export function localAddresses(addresses: readonly string[]): string[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const exact = new Set(interfaces.map((each) => each.address));
  const loopback = compileNetworks(
    interfaces.filter(({ internal }) => internal).flatMap(({ cidr }) => (cidr === null ? [] : [cidr])),
  );
  return addresses.filter((address) => exact.has(address) || loopback.contains(address));
}
