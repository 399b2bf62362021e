import { endpointKey } from '../match/endpoint-key.ts';
import type { EndpointsEntry, ServiceEntry } from '../table/entry.ts';
import { portKey } from '../translate/port-key.ts';

export interface EndpointCount {
  readonly ready: number;
  readonly total: number;
}

/**
 * How many endpoints a Service has, of the port that has the fewest ready ones: also of one that has none at all. Those that serve
 * while they terminate are not ready.
 */
export function countEndpoints(
  { ports }: Pick<ServiceEntry, 'ports'>,
  chunks: Iterable<EndpointsEntry>,
): EndpointCount {
  const served = ports.filter(({ error }) => error === null);
  const byPort = new Map(
    served.map((port) => [portKey(port), { ready: new Set<string>(), leaving: new Set<string>(), unready: 0 }]),
  );
  for (const chunk of chunks) {
    const count = byPort.get(portKey(chunk));
    if (count === undefined) continue;
    const keys = chunk.leaving ? count.leaving : count.ready;
    for (const endpoint of chunk.endpoints) keys.add(endpointKey(endpoint));
    count.unready += chunk.unready;
  }
  const counts = [...byPort.values()].map(({ ready, leaving, unready }) => ({
    ready: ready.size,
    total: ready.size + leaving.size + unready,
  }));
  return counts.sort((a, b) => a.ready - b.ready || a.total - b.total)[0] ?? { ready: 0, total: 0 };
}
