// One pass over table and heartbeats, so that each view costs its Service and not the fleet.
import type { Heartbeat, ListenerReport } from '../heartbeat.ts';
import { endpointKey } from '../match/matcher.ts';
import type { EndpointsEntry, ListenerEntry, NodeEntry, ServiceEntry } from '../table/entry.ts';
import type { Fleet } from './fleet.ts';

export interface FleetIndex {
  readonly services: readonly ServiceEntry[];
  /** By Service UID, sorted by node, port, protocol, address. */
  readonly listeners: ReadonlyMap<string, readonly ListenerEntry[]>;
  /** By Service UID: of the port that has the fewest ready ones. */
  readonly endpoints: ReadonlyMap<string, EndpointCount>;
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  /** By node; draining lives first, so that later ones win. */
  readonly reports: ReadonlyMap<string, readonly ReportedBy[]>;
}

/** The reports of one life of a node's proxy, by listener id. */
export interface ReportedBy {
  readonly heartbeat: Heartbeat;
  readonly byListener: ReadonlyMap<string, ListenerReport>;
}

interface EndpointCount {
  readonly ready: number;
  readonly total: number;
}

export function indexOf(fleet: Fleet): FleetIndex {
  const services: ServiceEntry[] = [];
  const listeners = new Map<string, ListenerEntry[]>();
  const chunks = new Map<string, EndpointsEntry[]>();
  const nodes = new Map<string, NodeEntry>();
  for (const entry of fleet.table.entries.values()) {
    if (entry.kind === 'service') services.push(entry);
    else if (entry.kind === 'listener') append(listeners, entry.service, entry);
    else if (entry.kind === 'endpoints') append(chunks, entry.service, entry);
    else if (entry.kind === 'node') nodes.set(entry.name, entry);
  }
  for (const list of listeners.values()) list.sort(byPlace);
  const endpoints = new Map([...chunks].map(([uid, list]) => [uid, endpointCount(list)]));
  return { services, listeners, endpoints, nodes, reports: reportsByNode(fleet) };
}

function reportsByNode(fleet: Fleet): Map<string, ReportedBy[]> {
  const reports = new Map<string, ReportedBy[]>();
  const servingLast = [...fleet.heartbeats].sort((a, b) => Number(b.draining) - Number(a.draining) || a.life - b.life);
  for (const heartbeat of servingLast) {
    const byListener = new Map(heartbeat.listeners.map((report) => [report.id, report]));
    append(reports, heartbeat.node, { heartbeat, byListener });
  }
  return reports;
}

function endpointCount(chunks: readonly EndpointsEntry[]): EndpointCount {
  const byPort = new Map<string, { ready: Set<string>; unready: number }>();
  for (const chunk of chunks) {
    const key = `${chunk.protocol}/${chunk.port}`;
    const count = byPort.get(key) ?? { ready: new Set(), unready: 0 };
    for (const endpoint of chunk.endpoints) count.ready.add(endpointKey(endpoint));
    count.unready += chunk.unready;
    byPort.set(key, count);
  }
  const counts = [...byPort.values()].map(({ ready, unready }) => ({ ready: ready.size, total: ready.size + unready }));
  return counts.sort((a, b) => a.ready - b.ready)[0] ?? { ready: 0, total: 0 };
}

function byPlace(a: ListenerEntry, b: ListenerEntry): number {
  if (a.node !== b.node) return a.node < b.node ? -1 : 1;
  return a.port - b.port || (a.id < b.id ? -1 : 1);
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
