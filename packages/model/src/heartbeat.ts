import type { Suspension } from './suspension.ts';
import type { Endpoint, Protocol } from './table/entry.ts';

/**
 * The version of a routing table. Two positions are equal only if all three fields are equal, so that a rollback of the store is noticed.
 */
export interface TablePosition {
  readonly epoch: number;
  readonly revision: number;
  /** A random id that the publisher of the revision chose. */
  readonly id: string;
}

/** Whether `value`, which comes from a file or another process, is a table position. */
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
  /** The number of the incarnation. Each start of a proxy on this node gets a higher number (see `HeartbeatStore.beginIncarnation`). */
  readonly life: number;
  readonly version: string;
  /** Milliseconds since the epoch, from the proxy's clock. */
  readonly startedAt: number;
  readonly draining: boolean;
  /** Bind addresses of the node that exist on the proxy's host. */
  readonly addresses: readonly string[];
  /** The newest table that all live workers have applied; null before the first table. */
  readonly applied: TablePosition | null;
  /** Sequence number of the suspensions that this proxy applies. */
  readonly cutoffSequence: number;
  readonly listeners: readonly ListenerReport[];
  readonly workers: number;
  /** The number of open connections. */
  readonly connections: number;
  /** Endpoints that fail for this proxy. Absent if there are none, or if the proxy's version does not report them. */
  readonly unhealthy?: UnhealthyReport;
  /**
   * When the proxy sent the heartbeat (milliseconds since the epoch, from the proxy's clock). Absent if the proxy's version does not report
   * the time.
   */
  readonly sentAt?: number;
  /**
   * The last time at which the ledger had all usage that the proxy had recorded (milliseconds since the epoch, from the proxy's clock).
   * Absent if there was no such time yet, or if the proxy's version does not report the time.
   */
  readonly usageReportedAt?: number;
  /** Warnings about kernel settings of the host that harm clients. Absent if the proxy's version does not report them. */
  readonly hostAdvice?: readonly string[];
  /** How the proxy uses sockets: a value of WEIR_TRANSPORT. Absent if the proxy's version does not report the transport. */
  readonly transport?: string;
  /** The address of the admin server. Absent if the server does not listen, or if the proxy's version does not report the address. */
  readonly admin?: AdminAddress;
  /** The suspensions that hold on this node only, made with `weir suspend --local`. Absent if there are none. */
  readonly localSuspensions?: readonly Suspension[];
  /**
   * Why the reader cannot decode the heartbeat of a proxy with another version, and what to do. Absent if the heartbeat was decoded. If
   * present, all fields except `node` and `life` are empty.
   */
  readonly unreadable?: string;
}

export interface AdminAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

export interface UnhealthyReport {
  /** The number of unhealthy endpoints. May exceed the length of `endpoints`. */
  readonly total: number;
  /** At most `MAX_REPORTED_UNHEALTHY_ENDPOINTS` unhealthy endpoints. */
  readonly endpoints: readonly UnhealthyEndpoint[];
}

export const MAX_REPORTED_UNHEALTHY_ENDPOINTS = 100;

/** An unhealthy endpoint of one port of a Service. */
export interface UnhealthyEndpoint {
  /** UID of the Service. */
  readonly service: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly endpoint: Pick<Endpoint, 'address' | 'port'>;
  /** `failing`: the active check of the endpoint fails. `ejected`: attempts to connect to the endpoint, or its answers, failed. */
  readonly state: 'failing' | 'ejected';
  /** Why the endpoint failed, as text. */
  readonly why: string;
  /** Whether the endpoint still gets clients, because too few other endpoints work. */
  readonly used: boolean;
}

export interface ListenerReport {
  /** Id of the listener entry. */
  readonly id: string;
  /** The UID of the Service that the proxy reports on. */
  readonly service: string;
  /** Whether the proxy has bound the port, or has checked that it can bind the port. */
  readonly bound: boolean;
  /** Whether the port accepts connections. Also false while no endpoint is ready or the Service is suspended. */
  readonly listening: boolean;
  /** Why and where binding failed, and what to do; null if binding did not fail. */
  readonly error: string | null;
}
