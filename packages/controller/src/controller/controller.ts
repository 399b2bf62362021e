import { type FleetSettings, isInForce, type Problem, type Snapshot, type TranslatorOutput } from '@weir/model';
import { type Clock, createLoop, type Logger, type Loop } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import type { Store } from '@weir/store';
import { FleetReconciler } from '../fleet/fleet-reconciler.ts';
import {
  ALWAYS_LEADER,
  type Leadership,
  LeadershipLost,
  LeaderTerm,
  leaderOnlyStore,
  runWhileLeading,
} from '../leader/leadership.ts';
import { STATUS_RECHECK_MS, type StatusSink } from '../status/status-sink.ts';
import { DeferredSuspensionCalls, type SuspensionObjectWriter } from '../suspensions/deferred-suspension-calls.ts';
import { SuspensionReconciler } from '../suspensions/suspension-reconciler.ts';
import { CertificateValidityTracker } from '../table/certificate-validity.ts';
import {
  type PartialSnapshot,
  type TableOutcome,
  TableReconciler,
  UnpublishedChange,
} from '../table/table-reconciler.ts';
import type { UsageArchive } from '../usage/tenant-usage.ts';
import { UsageReconciler } from '../usage/usage-reconciler.ts';
import type { Source, SourceSnapshot } from '../watch/source.ts';
import { addControllerMetrics, type ControllerMetrics } from './controller-metrics.ts';
import { logLoopFailure } from './log-loop-failure.ts';

const TABLE_LOOP = { gapMs: 5, resyncMs: 600_000, retryMs: [1_000, 30_000] } as const;
/** How often the proxies are listened to, and the store is asked whether it still holds what was written. */
const FLEET_LOOP = { gapMs: 200, resyncMs: 1_000, retryMs: [1_000, 5_000] } as const;
const FLEET_POLL_WHILE_PENDING_MS = 250;
const STATUS_LOOP = { gapMs: 5, resyncMs: STATUS_RECHECK_MS, retryMs: [1_000, 5_000] } as const;
const SUSPENSION_LOOP = { gapMs: 5, resyncMs: 10_000, retryMs: [1_000, 30_000] } as const;
const USAGE_LOOP = { gapMs: 1_000, resyncMs: 15_000, retryMs: [1_000, 10_000] } as const;

/** Source to store, and back to the Services. One loop decides and publishes, the others run beside it; closing closes neither end. */
export function startController(options: ControllerOptions): Controller {
  const { source, store, log, clock, leader = ALWAYS_LEADER } = options;
  const metrics = options.metrics ?? addControllerMetrics(createMetrics(), clock);
  const writing = leaderOnlyStore(store, leader);
  const table = new TableReconciler({ store: writing.table, log: log.child({ part: 'table' }) });
  const deferredCalls = new DeferredSuspensionCalls({
    source,
    writer: options.suspensions,
    store: store.suspensions,
    clock,
    log: log.child({ part: 'suspensions' }),
    onResult: () => decide.trigger(),
  });
  const cutoffs = new SuspensionReconciler({
    source,
    store: writing.cutoffs,
    clock,
    log: log.child({ part: 'cutoffs' }),
    onExpiry: () => decide.trigger(),
    onRequest: () => ask.trigger(),
    deferredCalls,
  });
  const fleet =
    options.status &&
    new FleetReconciler({
      heartbeats: store.heartbeats,
      sink: options.status,
      clock,
      log: log.child({ part: 'fleet' }),
      onStatusChange: () => tell.trigger(),
    });
  const usage = new UsageReconciler({
    store: writing.usage,
    heartbeats: store.heartbeats,
    archive: options.archive,
    clock,
    log: log.child({ part: 'usage' }),
  });
  const validities = new CertificateValidityTracker({ clock, onValidityChange: () => decide.trigger() });
  const readSnapshot = (): PartialSnapshot =>
    completeSnapshot(source.snapshot(), { settings: options.settings, fleet, validities });
  let snapshot: PartialSnapshot | undefined;
  const unpublished = new UnpublishedChange();
  const term = new LeaderTerm({
    leader,
    isClaimed: () => table.isClaimed,
    claim: () => table.claim(),
    async readSource(signal) {
      await source.refresh?.(signal);
      await source.synced(signal);
    },
    waitForProxies: async (signal) => fleet?.waitForProxies(source.snapshot(), signal),
  });
  const follow = (): void => {
    term.end();
    unpublished.take();
    table.reset();
    deferredCalls.reset();
    usage.reset();
    fleet?.reset();
  };

  const tellUndecided = logLoopFailure(log, 'the routing table is not up to date; it is tried again');
  const decide: Loop = createLoop({
    ...TABLE_LOOP,
    clock,
    onError(error, next) {
      metrics.recordPublishRetry();
      tellUndecided(error, next);
      // Nobody has listened yet when the store is away from the start.
      listen.trigger();
    },
    async run(signal) {
      const outcome = await runWhileLeading(() => decideInTheLead(signal));
      if (outcome === 'lead-lost') return follow();
      listen.trigger();
    },
  });
  const decideInTheLead = async (signal: AbortSignal): Promise<void> => {
    for (let attempt = 1; ; attempt += 1) {
      await term.begin(signal).catch(async (error: unknown) => {
        if (error instanceof LeadershipLost) throw error;
        // For who is to be told at least that.
        await source.synced(signal);
        snapshot = readSnapshot();
        throw error;
      });
      const outcome = await metrics.measure('table', decideAndPublish);
      if (outcome !== 'not-leader' && outcome !== 'wiped') return;
      await leader.recheck();
      if (leader.isLeader && attempt > 1) {
        throw new Error('another controller writes to the same fleet of the same store');
      }
      // Whoever it was may have decided of newer objects than ours.
      if (outcome === 'not-leader') follow();
    }
  };
  const decideAndPublish = async (): Promise<TableOutcome> => {
    snapshot = readSnapshot();
    const changedAt = unpublished.take();
    // Before the table, and whatever becomes of it: in a new store nothing may serve that is suspended, and whoever's objects no
    // table can be made of it must be possible to cut off.
    const cutOff = cutoffs.reconcile(snapshot).finally(() => ask.trigger());
    await cutOff.catch(() => undefined);
    const outcome = await publish(snapshot, changedAt);
    await cutOff;
    return outcome;
  };
  const publish = async (from: PartialSnapshot, changedAt: number | undefined): Promise<TableOutcome> => {
    const isFirst = table.translation === undefined;
    const outcome = await table.reconcile(from, changedAt).catch((error: unknown) => {
      unpublished.add(changedAt);
      throw error;
    });
    metrics.recordPublish(outcome);
    if (outcome === 'new-epoch' || (isFirst && outcome !== 'not-leader' && outcome !== 'wiped')) {
      fleet?.startGracePeriod();
      account.trigger();
    }
    return outcome;
  };

  const listen: Loop = createLoop({
    ...FLEET_LOOP,
    clock,
    onError: logLoopFailure(log, 'the proxies are not listened to; it is tried again'),
    async run() {
      const { translation } = table;
      if (!leader.isLeader || snapshot === undefined) return;
      if (translation === undefined) {
        if (store.connection !== 'ready') fleet?.reconcileUndecided(snapshot);
        return;
      }
      if (!(await isStoreIntact(table, cutoffs))) {
        table.recheckStore();
        decide.trigger();
      }
      const inForce = cutoffs.stored.filter((cutoff) => isInForce(cutoff, clock.now()));
      const decided = { table: translation.table, suspensions: inForce, snapshot, exhausted: usage.exhausted };
      await metrics.measure('fleet', async () => fleet?.reconcile(decided));
      if (fleet !== undefined && fleet.unreachableNodes !== snapshot?.unreachableNodes) decide.trigger();
      if (fleet?.hasPendingService) soon.start();
    },
  });
  const tell: Loop = createLoop({
    ...STATUS_LOOP,
    clock,
    onError: logLoopFailure(log, 'Services are not told what became of them; it is tried again'),
    async run(signal) {
      if (leader.isLeader)
        await runWhileLeading(() => metrics.measure('status', async () => fleet?.writeStatus(signal)));
    },
  });
  const ask: Loop = createLoop({
    ...SUSPENSION_LOOP,
    clock,
    onError: () => undefined, // told already, each once
    async run(signal) {
      if (leader.isLeader) await runWhileLeading(() => metrics.measure('suspensions', () => deferredCalls.run(signal)));
    },
  });
  const account: Loop = createLoop({
    ...USAGE_LOOP,
    clock,
    onError: logLoopFailure(log, 'the ledger is not looked after; it is tried again'),
    async run() {
      const { translation } = table;
      if (!leader.isLeader || translation === undefined) return;
      await runWhileLeading(() => metrics.measure('ledger', () => usage.reconcile(translation.table)));
    },
  });
  const soon = createSingleTimer(clock, FLEET_POLL_WHILE_PENDING_MS, () => listen.trigger());

  const stops = [
    source.onChange((changedAt) => {
      unpublished.add(changedAt);
      decide.trigger();
    }),
    leader.onChange(() => {
      // At once: when it is won again before the loop has run, another may have led in between.
      if (!leader.isLeader) follow();
      decide.trigger();
    }),
    metrics.trackLeadership(leader),
    store.onConnectionChange((state) => {
      if (state !== 'ready') return;
      fleet?.storeReconnected();
      table.recheckStore();
      decide.trigger();
      listen.trigger();
      account.trigger();
    }),
  ];
  decide.trigger();
  return {
    idle: () => decide.idle(),
    problems: () => table.translation?.problems ?? source.snapshot().problems,
    translation: () => table.translation,
    async close() {
      for (const stop of stops) stop();
      soon.cancel();
      cutoffs.close();
      validities.close();
      await Promise.all([decide.close(), listen.close(), tell.close(), ask.close(), account.close()]);
    },
  };
}

/** A store that was wiped, or fell back to an older copy, says so only when it is asked; one that is away, not at all. */
async function isStoreIntact(table: TableReconciler, cutoffs: SuspensionReconciler): Promise<boolean> {
  try {
    return (await table.isStoreIntact()) && (await cutoffs.isStoreIntact());
  } catch {
    return true;
  }
}

export interface ControllerOptions {
  readonly source: Source;
  readonly store: Store;
  readonly settings: FleetSettings;
  readonly log: Logger;
  readonly clock: Clock;
  /** Default: there is no other. */
  readonly leader?: Leadership;
  /** Default: nobody is told. */
  readonly status?: StatusSink;
  /** Where usage outlives the store; default: nowhere, and a wiped store begins with what this process remembers. */
  readonly archive?: UsageArchive;
  /** Default: a Suspension whose `until` passed stays where it is, and a cut-off that was made in the store stays there. */
  readonly suspensions?: SuspensionObjectWriter;
  /** Default: nobody reads any. */
  readonly metrics?: ControllerMetrics;
}

export interface Controller {
  /** Resolves once all that the source said so far is published (or another leads). */
  idle(): Promise<void>;
  /** Of the last decision; before one, those of the source. */
  problems(): readonly Problem[];
  /** The last decision; undefined before the first, and while another leads. */
  translation(): TranslatorOutput | undefined;
  close(): Promise<void>;
}

export interface SnapshotContext {
  readonly settings: FleetSettings;
  /** Absent: nobody listens to proxies. */
  readonly fleet?: Pick<Snapshot, 'unreachableNodes'> | undefined;
  readonly validities: CertificateValidityTracker;
}

/** What the source has read, and what it cannot know: settings, who is silent, what the time is. */
export function completeSnapshot(
  read: SourceSnapshot,
  { settings, fleet, validities }: SnapshotContext,
): PartialSnapshot {
  const validity = read.secrets && validities.validityOf(read.secrets);
  const unreachableNodes = fleet?.unreachableNodes;
  return Object.freeze({
    ...read,
    settings,
    ...(validity && { validity }),
    ...(unreachableNodes && { unreachableNodes }),
  });
}

/** However often it is started, there is one, from the first time on. */
export function createSingleTimer(clock: Clock, ms: number, then: () => void): { start(): void; cancel(): void } {
  let timer: ReturnType<Clock['setTimeout']> | undefined;
  return {
    start() {
      timer ??= clock.setTimeout(() => {
        timer = undefined;
        then();
      }, ms);
    },
    cancel: () => timer?.cancel(),
  };
}
