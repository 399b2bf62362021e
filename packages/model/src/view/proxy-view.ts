import type { Heartbeat, Position } from '../heartbeat.ts';
import { entriesOf } from '../table/table.ts';
import type { Fleet } from './fleet.ts';

/** One life of a proxy, or a node whose proxy is not heard. */
export interface ProxyView {
  readonly node: string;
  readonly life: number | null;
  readonly state: 'Serving' | 'Draining' | 'Silent';
  readonly version: string | null;
  /** Milliseconds since the epoch. */
  readonly startedAt: number | null;
  readonly addresses: readonly string[];
  readonly applied: Position | null;
  readonly listeners: { readonly listening: number; readonly bound: number; readonly failed: number };
  readonly workers: number;
  readonly connections: number;
}

/** Every node of the table and every proxy heard, sorted by node and life. */
export function proxyViewsFor(fleet: Fleet): ProxyView[] {
  const heard = new Set(fleet.heartbeats.map((heartbeat) => heartbeat.node));
  const silent = entriesOf(fleet.table, 'node').filter((node) => !heard.has(node.name));
  return [
    ...fleet.heartbeats.map(viewOf),
    ...silent.map((node) => ({ ...SILENT, node: node.name, addresses: node.bindAddresses })),
  ].sort((a, b) => (a.node === b.node ? (a.life ?? 0) - (b.life ?? 0) : a.node < b.node ? -1 : 1));
}

const SILENT: Omit<ProxyView, 'node' | 'addresses'> = {
  life: null,
  state: 'Silent',
  version: null,
  startedAt: null,
  applied: null,
  listeners: { listening: 0, bound: 0, failed: 0 },
  workers: 0,
  connections: 0,
};

function viewOf(heartbeat: Heartbeat): ProxyView {
  const { listeners } = heartbeat;
  return {
    node: heartbeat.node,
    life: heartbeat.life,
    state: heartbeat.draining ? 'Draining' : 'Serving',
    version: heartbeat.version,
    startedAt: heartbeat.startedAt,
    addresses: heartbeat.addresses,
    applied: heartbeat.applied,
    listeners: {
      listening: listeners.filter((report) => report.listening).length,
      bound: listeners.filter((report) => report.bound).length,
      failed: listeners.filter((report) => report.error !== null).length,
    },
    workers: heartbeat.workers,
    connections: heartbeat.connections,
  };
}
