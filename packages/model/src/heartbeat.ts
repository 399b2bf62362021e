import type { Endpoint, Protocol } from './table/entry.ts';

/** The version of a routing table. Positions are equal only if all three parts are, so that a store that was rolled back is noticed. */
export interface TablePosition {
  readonly epoch: number;
  readonly revision: number;
  /** A random id that the publisher of the revision chose. */
  readonly id: string;
}

/** Whether a value read from a file or from another process is a table position. */
export function isTablePosition(value: unknown): value is TablePosition {
  const { epoch, revision, id } = (value ?? {}) as Partial<TablePosition>;
  return isCount(epoch) && isCount(revision) && typeof id === 'string';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** The state that each proxy process reports once a second. */
export interface Heartbeat {
  readonly node: string;
  /** The incarnation: counts the starts of a proxy on this node. */
  readonly life: number;
  readonly version: string;
  /** Milliseconds since the epoch, from the proxy's clock. */
  readonly startedAt: number;
  readonly draining: boolean;
  /** Bind addresses of the node that exist on this host. */
  readonly addresses: readonly string[];
  /** The newest table that all live workers have applied; null before the first table. */
  readonly applied: TablePosition | null;
  /** Sequence of the suspensions that this proxy applies. */
  readonly cutoffSequence: number;
  readonly listeners: readonly ListenerReport[];
  readonly workers: number;
  /** Open connections. */
  readonly connections: number;
  /** Endpoints that fail for this proxy. Absent if there are none, or if the proxy's version does not report them. */
  readonly unhealthy?: UnhealthyReport;
  /** When the proxy sent the heartbeat: milliseconds since the epoch, from its clock. Absent if its version does not report this. */
  readonly sentAt?: number;
  /** Warnings about kernel settings of the host that harm clients. Absent if the proxy's version does not report them. */
  readonly hostAdvice?: readonly string[];
  /**
   * What is wrong and how to fix it, if this version cannot decode the heartbeat of another version; otherwise absent. All fields
   * but `node` and `life` are empty then.
   */
  readonly unreadable?: string;
}

export interface UnhealthyReport {
  /** The number of unhealthy endpoints, which may exceed the list. */
  readonly total: number;
  /** At most `MAX_REPORTED_UNHEALTHY_ENDPOINTS`. */
  readonly endpoints: readonly UnhealthyEndpoint[];
}

export const MAX_REPORTED_UNHEALTHY_ENDPOINTS = 100;

/** One endpoint of one port of a Service. */
export interface UnhealthyEndpoint {
  /** UID of the Service. */
  readonly service: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly endpoint: Pick<Endpoint, 'address' | 'port'>;
  /** `failing`: its active check fails. `ejected`: connects to it failed. */
  readonly state: 'failing' | 'ejected';
  /** The failure, as text. */
  readonly why: string;
  /** Whether the endpoint still gets clients, because too few other endpoints work. */
  readonly used: boolean;
}

export interface ListenerReport {
  /** Id of the listener entry. */
  readonly id: string;
  /** The UID of the Service that the proxy reports on. */
  readonly service: string;
  /** The proxy has bound the port, or could bind it. */
  readonly bound: boolean;
  /** The port accepts connections. False also while no endpoint is ready or the Service is suspended. */
  readonly listening: boolean;
  /** Why binding failed, where, and what to do; null if it did not fail. */
  readonly error: string | null;
}
