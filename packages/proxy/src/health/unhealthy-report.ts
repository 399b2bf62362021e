import { MAX_REPORTED_UNHEALTHY_ENDPOINTS, type UnhealthyEndpoint, type UnhealthyReport } from '@weir/model/data-plane';
import type { HealthMonitor } from './health-room.ts';

/** Undefined: all work. One of each port first, so that no Service's are hidden behind another's many. */
export function unhealthyReportFor(health: Pick<HealthMonitor, 'unhealthy'>): UnhealthyReport | undefined {
  const ports = [...health.unhealthy()];
  const total = ports.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
  if (total === 0) return undefined;
  const told: UnhealthyEndpoint[] = [];
  for (let index = 0; told.length < Math.min(total, MAX_REPORTED_UNHEALTHY_ENDPOINTS); index += 1) {
    for (const { route, endpoints } of ports) {
      const one = endpoints[index];
      if (one === undefined || told.length === MAX_REPORTED_UNHEALTHY_ENDPOINTS) continue;
      const { service, listener } = route;
      told.push({ service: service.uid, protocol: listener.protocol, port: listener.port, ...one });
    }
  }
  return { total, endpoints: told };
}
