import type { Heartbeat, TablePosition } from '../heartbeat.ts';
import type { NodeEntry } from '../table/entry.ts';
import { entriesOf } from '../table/table.ts';
import type { FleetState } from './fleet-state.ts';

/** One proxy process, or a node whose proxy sends no heartbeats. */
export interface ProxyView {
  readonly node: string;
  /** The incarnation of the proxy; null for a silent node. */
  readonly life: number | null;
  /** `Silent`: the proxy sends no heartbeats. `Stray`: the proxy runs on a node that is not in the fleet, so the proxy serves nothing. */
  readonly state: 'Serving' | 'Draining' | 'Silent' | 'Stray';
  /** What is wrong and what to do; null if nothing is wrong. */
  readonly message: string | null;
  readonly version: string | null;
  /** A value of WEIR_TRANSPORT; null if the proxy does not report its transport. */
  readonly transport: string | null;
  /** Milliseconds since the epoch. */
  readonly startedAt: number | null;
  readonly addresses: readonly string[];
  readonly applied: TablePosition | null;
  readonly listeners: { readonly listening: number; readonly bound: number; readonly failed: number };
  readonly workers: number;
  readonly connections: number;
}

/**
 * Returns a view of every proxy that sends heartbeats, and of every node of the table whose proxy sends none. The views are sorted by node
 * and incarnation.
 */
export function proxyViewsFor(fleet: FleetState): ProxyView[] {
  const reporting = new Set(fleet.heartbeats.map((heartbeat) => heartbeat.node));
  const nodes = entriesOf(fleet.table, 'node');
  const nodeNames = new Set(nodes.map((node) => node.name));
  const silent = nodes.filter((node) => !reporting.has(node.name));
  return [
    ...fleet.heartbeats.map((heartbeat) => viewOf(heartbeat, nodeNames)),
    ...silent.map((node) => silentView(node)),
  ].sort((a, b) => (a.node === b.node ? (a.life ?? 0) - (b.life ?? 0) : a.node < b.node ? -1 : 1));
}

function silentView({ name, bindAddresses }: NodeEntry): ProxyView {
  return {
    node: name,
    life: null,
    state: 'Silent',
    message: `the proxy of node "${name}" has sent no heartbeat for 3 s; check the pod of the proxy, and whether this pod reaches the store`,
    version: null,
    transport: null,
    startedAt: null,
    addresses: bindAddresses,
    applied: null,
    listeners: { listening: 0, bound: 0, failed: 0 },
    workers: 0,
    connections: 0,
  };
}

function viewOf(heartbeat: Heartbeat, nodeNames: ReadonlySet<string>): ProxyView {
  const { node, draining, listeners } = heartbeat;
  const state = draining ? 'Draining' : nodeNames.has(node) ? 'Serving' : 'Stray';
  return {
    node,
    life: heartbeat.life,
    state,
    message: heartbeat.unreadable ?? (state === 'Stray' ? strayMessage(node) : null),
    version: heartbeat.version,
    transport: heartbeat.transport ?? null,
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
  return `the proxy of node "${node}" serves nothing, because "${node}" is not a load-balancing node; label the node (kubectl label node ${node} role=loadbalancer), or correct WEIR_NODE of the proxy if no node has this name`;
}
