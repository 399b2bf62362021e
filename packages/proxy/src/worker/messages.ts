// What the main thread and a worker say to each other, in lists of messages (see outbox.ts). Orders are followed in the order in which they were given,
// but cut-offs at once.
import type { Change, ListenerKey, Protocol, RouteKey, Suspension } from '@weir/model/data-plane';
import type { LimiterRows } from '../limits/admission.ts';
import type { WorkerLimiterMemory } from '../limits/limiter-state.ts';
import type { Outcome } from '../metering/outcome.ts';
import type { CertificateFaultReport } from '../protocol/tls-contexts.ts';
import type { PeerWorkersSetup } from '../relay/peer-workers.ts';
import type { LocalFailureCounts, PassiveHealthReport } from '../upstream/connect-reports.ts';
import type { DrainingEndpoint } from '../upstream/health/draining-endpoints.ts';

/** What a worker is born with. */
export interface WorkerStartData {
  readonly node: string;
  /** One Int32, counted up while the worker is alive: PULSE. */
  readonly livenessCounter: SharedArrayBuffer;
  readonly counterBlocks: readonly SharedArrayBuffer[];
  /** CIDRs from which every connection begins with a PROXY header. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** What ClientIP affinity remembers: one for all workers. */
  readonly affinityMemory: SharedArrayBuffer;
  readonly limiterMemory: WorkerLimiterMemory;
  readonly peerWorkers: PeerWorkersSetup;
  /** Opens the private keys of certificates; undefined: this proxy has none. In the clear: a `Secret` cannot be sent. */
  readonly fleetSecret?: string | undefined;
  /** How many workers there are. */
  readonly workerCount: number;
  /** Three doubles: by how much the worker's events come too late (see event-loop-delay.ts). */
  readonly eventLoopDelays: SharedArrayBuffer;
}

/** How often a worker shows that it lives. */
export const LIVENESS_INTERVAL_MS = 250;

export type WorkerCommand =
  /** More room for counters: the next thousand slots. */
  | { readonly kind: 'add-counter-block'; readonly block: SharedArrayBuffer }
  | TableCommand
  /** The computed table of these listeners, for the endpoints that they have now; undefined: they need none any more. */
  | {
      readonly kind: 'maglev';
      readonly listeners: readonly RouteKey[];
      readonly slots: SharedArrayBuffer | undefined;
    }
  | HealthCommand
  /** All that are in force, at `now` (milliseconds since the epoch). */
  | { readonly kind: 'suspensions'; readonly suspensions: readonly Suspension[]; readonly now: number }
  | { readonly kind: 'open-listener'; readonly listener: ListenerConfig }
  | { readonly kind: 'close-listener'; readonly listener: ListenerConfig }
  | { readonly kind: 'terminate'; readonly outcome: Outcome }
  /** Answered by `done` when every order before it has been followed. */
  | { readonly kind: 'mark'; readonly sequence: number };

/** Of the endpoints of these listeners, by `endpointKey`; of all others it holds no more. */
export interface HealthCommand {
  readonly kind: 'health';
  readonly listeners: readonly RouteKey[];
  /** Not to be chosen while others can be. */
  readonly excluded: readonly string[];
  /** Whose check fails, chosen or not. */
  readonly failing: readonly string[];
  /** Of these, whose connections may go on only for the time that the Service's health check gives them. */
  readonly draining: readonly string[];
}

export interface TableCommand {
  readonly kind: 'table';
  readonly changes: readonly Change[];
  /** Where Services of these UIDs are counted from now on; before the changes are made. */
  readonly slots: readonly (readonly [uid: string, slot: number])[];
  /** What limits them from now on. */
  readonly limits?: readonly LimiterRows[];
  /** What the changes make pass from hand to hand (listeners, names, shared places), with each who has or gets it: see `holdersOf`. */
  readonly holders?: readonly (readonly [what: string, service: string])[];
  /** Nothing was said before of what it puts, or the same: the Services are new there, and nobody else has their listeners. */
  readonly isFirst?: true;
}

/** A large table on its way: each piece ends at one of `ends`, and is a TableOrder as JSON. */
export interface PackedTableCommand {
  readonly kind: 'packed-table';
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly ends: Uint32Array;
  /** By piece: whose it is alone, if it may wait until somebody asks for it (see sleepers.ts); absent: none may. */
  readonly lazyServices?: readonly (LazyService | null)[];
}

/** A Service of which nothing was said before, and its routes. */
export type LazyService = readonly [uid: string, ...routes: RouteKey[]];

/** What a worker gets. */
export type SentCommand = WorkerCommand | PackedTableCommand;

/** One opening of a listener; `id` tells it from an earlier one of the same key. */
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
  /** Once a second while there are any, and when there are none any more. */
  | { readonly kind: 'draining-endpoints'; readonly endpoints: readonly DrainingEndpoint[] }
  | { readonly kind: 'passive-health'; readonly reports: readonly PassiveHealthReport[] }
  /** Connects that this host could not make since the last time. */
  | { readonly kind: 'local-failures'; readonly counts: LocalFailureCounts }
  /** Clients are refused for want of it. */
  | { readonly kind: 'certificate-fault'; readonly report: CertificateFaultReport }
  | { readonly kind: 'error'; readonly origin: 'accept' | 'internal'; readonly text: string };
