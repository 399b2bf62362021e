import type { Heartbeat, TablePosition } from '../heartbeat.ts';
import type { NodeEntry } from '../table/entry.ts';
import { entriesOf } from '../table/table.ts';
import type { FleetState } from './fleet-state.ts';

/** One life of a proxy, or a node whose proxy is not heard. */
export interface ProxyView {
  readonly node: string;
  readonly life: number | null;
  /** Stray: it is heard, but its node carries no proxy, so nothing is placed there. */
  readonly state: 'Serving' | 'Draining' | 'Silent' | 'Stray';
  /** What is wrong, and what to do; null: nothing is. */
  readonly message: string | null;
  readonly version: string | null;
  /** Milliseconds since the epoch. */
  readonly startedAt: number | null;
  readonly addresses: readonly string[];
  readonly applied: TablePosition | null;
  readonly listeners: { readonly listening: number; readonly bound: number; readonly failed: number };
  readonly workers: number;
  readonly connections: number;
}

/** Every node of the table and every proxy heard, sorted by node and life. */
export function proxyViewsFor(fleet: FleetState): ProxyView[] {
  const heard = new Set(fleet.heartbeats.map((heartbeat) => heartbeat.node));
  const nodes = entriesOf(fleet.table, 'node');
  const known = new Set(nodes.map((node) => node.name));
  const silent = nodes.filter((node) => !heard.has(node.name));
  return [
    ...fleet.heartbeats.map((heartbeat) => viewOf(heartbeat, known)),
    ...silent.map((node) => silentView(node)),
  ].sort((a, b) => (a.node === b.node ? (a.life ?? 0) - (b.life ?? 0) : a.node < b.node ? -1 : 1));
}

function silentView({ name, bindAddresses }: NodeEntry): ProxyView {
  return {
    node: name,
    life: null,
    state: 'Silent',
    message: `no proxy of node "${name}" has been heard for 3 s; look at its pod and whether it reaches the store`,
    version: null,
    startedAt: null,
    addresses: bindAddresses,
    applied: null,
    listeners: { listening: 0, bound: 0, failed: 0 },
    workers: 0,
    connections: 0,
  };
}

function viewOf(heartbeat: Heartbeat, known: ReadonlySet<string>): ProxyView {
  const { node, draining, listeners } = heartbeat;
  const state = draining ? 'Draining' : known.has(node) ? 'Serving' : 'Stray';
  return {
    node,
    life: heartbeat.life,
    state,
    message: heartbeat.unreadable ?? (state === 'Stray' ? strayMessage(node) : null),
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

function strayMessage(node: string): string {
  return `a proxy is heard of node "${node}", which is no load-balancing node, so it serves nothing; kubectl label node ${node} role=loadbalancer, or correct WEIR_NODE of the proxy if no node has that name`;
}
