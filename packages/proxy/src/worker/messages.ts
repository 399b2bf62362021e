// The contract between the supervisor and a worker thread. Messages travel in lists (`MessageBatcher`). A worker applies
// commands in the order in which they were posted, except for suspensions, which it applies at once.
import type { Change, ListenerKey, Protocol, RouteKey, Suspension, TenantClients } from '@weir/model/data-plane';
import type { LogChunk } from '../access-log/log-buffer.ts';
import type { LimiterRows } from '../limits/admission.ts';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { CertificateFaultReport } from '../protocol/tls-contexts.ts';
import type { PeerWorkersSetup } from '../relay/peer-workers.ts';
import type { TlsKind, TransportKind } from '../transport/choose-transport.ts';
import type { LocalFailureCounts, PassiveHealthReport } from '../upstream/connect-reports.ts';
import type { DrainingEndpoint } from '../upstream/health/draining-endpoints.ts';

/** The data with which a worker thread is started. */
export interface WorkerStartData {
  readonly node: string;
  /** The `LIVENESS_COUNTERS`, each an Int32. */
  readonly livenessCounters: SharedArrayBuffer;
  readonly counterBlocks: readonly SharedArrayBuffer[];
  /**
   * CIDRs of the load balancers in front of the proxies. A connection from these networks must begin with a PROXY
   * header.
   */
  readonly trustedProxies?: readonly string[] | undefined;
  /** CIDRs of the HTTP proxies in front of the proxies, whose fields about the client are trusted. */
  readonly trustForwarded?: readonly string[] | undefined;
  /** Whether endpoints get Forwarded (RFC 7239) in addition to X-Forwarded-For; false by default. */
  readonly writeForwarded?: boolean | undefined;
  /** Whether to count the clients with the most bytes and connections of each tenant; false by default. */
  readonly countsClients?: boolean | undefined;
  /** The table of ClientIP affinity, which all workers share. */
  readonly affinityMemory: SharedArrayBuffer;
  readonly limiterMemory: WorkerLimiterMemory;
  readonly peerWorkers: PeerWorkersSetup;
  /**
   * Decrypts the private keys of certificates; undefined if this proxy has no fleet secret. The value is a plain
   * string, because a `Secret` cannot be cloned.
   */
  readonly fleetSecret?: string | undefined;
  /** The key of sticky cookies if there is no fleet secret. */
  readonly stickyKey: Uint8Array;
  readonly workerCount: number;
  readonly transport: TransportKind;
  readonly tls: TlsKind;
  /** One byte for each descriptor, see `recordDescriptors`. */
  readonly descriptors: SharedArrayBuffer;
  /** See `untilTerminable`. */
  readonly terminationGuard: SharedArrayBuffer;
  /** Three doubles in seconds, one for each of `DELAY_QUANTILES`. */
  readonly eventLoopDelays: SharedArrayBuffer;
  /** One double: how many datagrams the kernel has dropped at the worker's UDP listeners. */
  readonly droppedDatagrams: SharedArrayBuffer;
  /** Tells whether the main thread has taken the last lines of the access log, see `takeNextChunk`. */
  readonly accessLogFlag: SharedArrayBuffer;
}

export const LIVENESS_INTERVAL_MS = 250;
/** The index of the counter that a timer of the worker increments every `LIVENESS_INTERVAL_MS`. */
export const TURNS_COUNTER = 0;
/** The index of the counter that the worker increments for each unit of work, see `countProgress`. */
export const PROGRESS_COUNTER = 1;
export const LIVENESS_COUNTERS = 2;

export type WorkerCommand =
  /** `block` is memory for the counters of 1,024 more slots. */
  | { readonly kind: 'add-counter-block'; readonly block: SharedArrayBuffer }
  | TableCommand
  /**
   * `slots` is the Maglev table for the current endpoints of these listeners; undefined if they no longer need a table.
   */
  | {
      readonly kind: 'maglev';
      readonly listeners: readonly RouteKey[];
      readonly slots: SharedArrayBuffer | undefined;
    }
  | HealthCommand
  /** All suspensions in force at `now` (milliseconds since the epoch). */
  | { readonly kind: 'suspensions'; readonly suspensions: readonly Suspension[]; readonly now: number }
  /** Asks for the clients of a tenant with the most bytes and connections. */
  | { readonly kind: 'report-clients'; readonly tenant: string; readonly request: number }
  | { readonly kind: 'open-listener'; readonly listener: ListenerConfig }
  | { readonly kind: 'close-listener'; readonly listener: ListenerConfig }
  /**
   * Ends HTTP connections after their next response, which announces the end. `idleMs` is how long a persistent
   * HTTP/1.1 connection may wait for its next request.
   */
  | { readonly kind: 'drain'; readonly idleMs: number }
  | { readonly kind: 'terminate'; readonly outcome: Outcome }
  /** The worker answers with `mark-reached` when it has applied every command that was posted before this mark. */
  | { readonly kind: 'mark'; readonly sequence: number };

/** The health of the endpoints of these listeners, as lists of `endpointKey`. Endpoints in no list are healthy. */
export interface HealthCommand {
  readonly kind: 'health';
  readonly listeners: readonly RouteKey[];
  /** Endpoints that are chosen only if no other endpoint is left. */
  readonly excluded: readonly string[];
  /** Endpoints whose health check fails, whether they are in `excluded` or not. */
  readonly failing: readonly string[];
  /** The failing endpoints whose connections end after the drain timeout of the Service's health check. */
  readonly draining: readonly string[];
}

export interface TableCommand {
  readonly kind: 'table';
  readonly changes: readonly Change[];
  /** New counter slots of Services. The worker assigns them before it applies `changes`. */
  readonly slots: readonly (readonly [uid: string, slot: number])[];
  /** New limiter rows of Services. */
  readonly limits?: readonly LimiterRows[];
  /**
   * The listeners and hosts that these changes move, each with the UID of a Service that owned or gets the listener or
   * host (see `movedResources` of the model).
   */
  readonly movedResources?: readonly (readonly [resource: string, uid: string])[];
  /**
   * Set if each Service of this command is new to the worker or unchanged, so that the command moves no listener from
   * one Service to another.
   */
  readonly isFirst?: true;
}

/**
 * A large table. Batch `i` is the JSON of a `TableCommand`, which `bytes` holds from `ends[i - 1]` (0 for the first) to
 * `ends[i]`.
 */
export interface PackedTableCommand {
  readonly kind: 'packed-table';
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly ends: Uint32Array;
  /**
   * For each batch, its only Service, which may be decoded when the first client connects. Null or absent if the batch
   * must be decoded at once.
   */
  readonly lazyServices?: readonly (LazyService | null)[];
}

export type LazyService = readonly [uid: string, ...routes: RouteKey[]];

/** A command as a worker receives it. */
export type SentCommand = WorkerCommand | PackedTableCommand;

/** A listener to open or close. `id` is different each time the listener with this key is opened. */
export interface ListenerConfig {
  readonly id: number;
  readonly key: ListenerKey;
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
}

export type WorkerMessage =
  | { readonly kind: 'mark-reached'; readonly sequence: number }
  | { readonly kind: 'listening'; readonly listenerId: number }
  | { readonly kind: 'failed'; readonly listenerId: number; readonly code: string }
  /**
   * The endpoints that drain. Sent once a second while endpoints drain, and once with an empty list when none drains
   * any more.
   */
  | { readonly kind: 'draining-endpoints'; readonly endpoints: readonly DrainingEndpoint[] }
  | { readonly kind: 'passive-health'; readonly reports: readonly PassiveHealthReport[] }
  /** The connection attempts that failed because of this host since the last message of this kind. */
  | { readonly kind: 'local-failures'; readonly counts: LocalFailureCounts }
  | { readonly kind: 'access-log'; readonly chunk: LogChunk }
  /** Answers `report-clients`. `clients` is undefined if clients are not counted. */
  | { readonly kind: 'clients'; readonly request: number; readonly clients: TenantClients | undefined }
  /** A certificate cannot be used, so the clients that need it are refused. */
  | { readonly kind: 'certificate-fault'; readonly report: CertificateFaultReport }
  | { readonly kind: 'error'; readonly origin: 'accept' | 'internal'; readonly text: string };

/** The maximum number of messages in a list. The receiver reads a list within one turn of the event loop. */
const MAX_MESSAGES_PER_BATCH = 200;

/**
 * Sends the first message of a turn of the event loop at once, and the later messages of the same turn as one list.
 * With thousands of listeners, sending a message costs more than handling it.
 */
export class MessageBatcher<T> {
  readonly #send: (messages: readonly T[]) => void;
  readonly #schedule: (flush: () => void) => void;
  #pending: T[] = [];
  #isScheduled = false;

  /** `schedule` calls its argument at the end of the current turn of the event loop. */
  constructor(send: (messages: readonly T[]) => void, schedule: (flush: () => void) => void) {
    this.#send = send;
    this.#schedule = schedule;
  }

  add(message: T): void {
    this.#pending.push(message);
    if (this.#isScheduled && this.#pending.length < MAX_MESSAGES_PER_BATCH) return;
    this.flush();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#schedule(this.#onScheduled);
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const messages = this.#pending;
    this.#pending = [];
    this.#send(messages);
  }

  readonly #onScheduled = (): void => {
    this.#isScheduled = false;
    this.flush();
  };
}
