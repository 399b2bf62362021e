import { endpointKey } from '../match/matcher.ts';
import type { EndpointsEntry } from '../table/entry.ts';

export interface EndpointCount {
  readonly ready: number;
  readonly total: number;
}

/** How many endpoints a Service has, of the port that has the fewest ready ones. */
export function endpointCountOf(chunks: Iterable<EndpointsEntry>): EndpointCount {
  const byPort = new Map<string, { ready: Set<string>; unready: number }>();
  for (const chunk of chunks) {
    const key = `${chunk.protocol}/${chunk.port}`;
    const count = byPort.get(key) ?? { ready: new Set(), unready: 0 };
    for (const endpoint of chunk.endpoints) count.ready.add(endpointKey(endpoint));
    count.unready += chunk.unready;
    byPort.set(key, count);
  }
  const counts = [...byPort.values()].map(({ ready, unready }) => ({ ready: ready.size, total: ready.size + unready }));
  return counts.sort((a, b) => a.ready - b.ready || a.total - b.total)[0] ?? { ready: 0, total: 0 };
}
