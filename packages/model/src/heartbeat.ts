import type { Endpoint, Protocol } from './table/entry.ts';

/** Which table: a position compares equal only in all three parts, so that a rolled-back store is noticed. */
export interface TablePosition {
  readonly epoch: number;
  readonly revision: number;
  /** Random, made by the publisher of the revision. */
  readonly id: string;
}

/** Whether what was read from a file or from another process is a position. */
export function isTablePosition(value: unknown): value is TablePosition {
  const { epoch, revision, id } = (value ?? {}) as Partial<TablePosition>;
  return isCount(epoch) && isCount(revision) && typeof id === 'string';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** What one life of a proxy says of itself once a second. */
export interface Heartbeat {
  readonly node: string;
  /** Counts up with each start of a proxy on this node. */
  readonly life: number;
  readonly version: string;
  /** Milliseconds since the epoch, by the proxy's clock. */
  readonly startedAt: number;
  readonly draining: boolean;
  /** Addresses of its node that exist on this host. */
  readonly addresses: readonly string[];
  /** What all live workers have applied; null before the first table. */
  readonly applied: TablePosition | null;
  /** Sequence of the cut-offs in force here. */
  readonly cutoffSequence: number;
  readonly listeners: readonly ListenerReport[];
  readonly workers: number;
  /** Connections open now. */
  readonly connections: number;
  /** Endpoints that do not work, as this proxy finds. Absent: none, or its version does not tell. */
  readonly unhealthy?: UnhealthyReport;
  /** When it was said, in milliseconds since the epoch by the proxy's clock. Absent: its version does not tell. */
  readonly sentAt?: number;
  /** What of its host's kernel settings will cost clients something, in words. Absent: its version does not tell. */
  readonly hostAdvice?: readonly string[];
  /**
   * Why nothing else is known of a proxy that is there: its version says it in a way that this one does not know, and how to mend
   * that. All but node and life is then empty. Absent: it was understood.
   */
  readonly unreadable?: string;
}

export interface UnhealthyReport {
  /** How many there are. */
  readonly total: number;
  /** At most `MOST_UNHEALTHY_TOLD` of them. */
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
  /** Its check fails, or connects to it did. */
  readonly state: 'failing' | 'ejected';
  /** What failed. */
  readonly why: string;
  /** Clients are sent there nevertheless, because too few others work. */
  readonly used: boolean;
}

export interface ListenerReport {
  /** Id of the listener entry. */
  readonly id: string;
  /** The UID of the Service it was confirmed for. */
  readonly service: string;
  /** The proxy holds or could take the port. */
  readonly bound: boolean;
  /** False also while there is no ready endpoint, or a cut-off. */
  readonly listening: boolean;
  /** Why it could not be bound: what, where, what to do. */
  readonly error: string | null;
}
