// Translates the source's objects into the routing table whenever an object changes, and publishes the table to the store. Only this
// loop learns from the store that another controller has claimed the table, so this loop starts and ends each term for all loops.
import { type CertificateValidity, certificateValidityFor, earliest, type SecretObject } from '@weir/model';
import { type Clock, Loop, type Timer } from '@weir/runtime';
import { type LoopContext, logLoopFailure, type ReconcileLoop } from '../controller/reconcile-loop.ts';
import type { FleetReconciler } from '../fleet/fleet-reconciler.ts';
import { LeadershipLost, LeaderTerm, runWhileLeading } from '../leader/leadership.ts';
import type { RuleReconciler } from '../rules/rule-reconciler.ts';
import type { SuspensionReconciler } from '../suspensions/suspension-reconciler.ts';
import { parseSettingsInTurns } from './parse-settings-in-turns.ts';
import type { PartialSnapshot, TableOutcome, TableReconciler } from './table-reconciler.ts';

const TABLE_LOOP = { gapMs: 5, resyncMs: 600_000, retryMs: [1_000, 30_000] } as const;

export interface TableLoopOptions {
  readonly table: TableReconciler;
  readonly suspensions: SuspensionReconciler;
  readonly rules: Pick<RuleReconciler, 'records'>;
  /** Undefined if this controller reports no status. */
  readonly fleet: FleetReconciler | undefined;
  /** Calls `onLeadershipLost` of all loops, including this loop. */
  readonly loseLeadership: () => void;
}

export class TableLoop implements ReconcileLoop {
  readonly loop: Loop;
  readonly #context: LoopContext;
  readonly #options: TableLoopOptions;
  readonly #term: LeaderTerm;
  readonly #validities: CertificateValidityTracker;
  #snapshot: PartialSnapshot | undefined;
  /**
   * The time of the oldest change of the source that is not published yet, in milliseconds since the epoch. Undefined if there is no such
   * change, or if the time is unknown.
   */
  #unpublishedSince: number | undefined;

  constructor(context: LoopContext, options: TableLoopOptions) {
    const { source, leader, metrics, clock, log, wake } = context;
    const { table, fleet } = options;
    this.#context = context;
    this.#options = options;
    this.#validities = new CertificateValidityTracker({ clock, onValidityChange: () => wake('table') });
    this.#term = new LeaderTerm({
      leader,
      isClaimed: () => table.isClaimed,
      claim: () => table.claim(),
      async readSource(signal) {
        await source.refresh?.(signal);
        await source.synced(signal);
      },
      waitForProxies: async (signal) => fleet?.waitForProxies(source.snapshot(), signal),
    });
    const logFailure = logLoopFailure(log, 'failed to publish the routing table; retrying');
    this.loop = new Loop({
      ...TABLE_LOOP,
      clock,
      onError(error, next) {
        metrics.recordPublishRetry();
        logFailure(error, next);
        // Runs the fleet loop after a failure too, because the fleet loop has not run yet if the store has been unreachable since the
        // start.
        wake('fleet');
      },
      run: async (signal) => {
        const outcome = await runWhileLeading(() => this.#publishWhileLeading(signal));
        if (outcome === 'leadership-lost') return options.loseLeadership();
        wake('fleet');
      },
    });
  }

  /** The snapshot of the last attempt to publish; undefined before the first attempt. */
  get snapshot(): PartialSnapshot | undefined {
    return this.#snapshot;
  }

  /**
   * Call this when the source has changed. `changedAt` is when the objects changed, in milliseconds since the epoch; undefined if
   * unknown.
   */
  onSourceChange(changedAt: number | undefined): void {
    this.#unpublishedSince = earliest(this.#unpublishedSince, changedAt);
    this.loop.trigger();
  }

  onLeadershipLost(): void {
    this.#term.end();
    this.#unpublishedSince = undefined;
    this.#options.table.reset();
  }

  onStoreReady(): void {
    this.#options.table.recheckStore();
    this.loop.trigger();
  }

  close(): void {
    this.#validities.close();
  }

  async #publishWhileLeading(signal: AbortSignal): Promise<void> {
    const { leader, metrics } = this.#context;
    for (let attempt = 1; ; attempt += 1) {
      await this.#beginTerm(signal);
      const outcome = await metrics.measure('table', () => this.#reconcile());
      if (outcome !== 'not-leader' && outcome !== 'wiped') return;
      await leader.recheck();
      if (leader.isLeader && attempt > 1) {
        throw new Error('another controller writes to this fleet in this store; use another WEIR_FLEET or Redis');
      }
      // Ends the term, because the other leader may have decided from newer objects than this controller has read.
      if (outcome === 'not-leader') this.#options.loseLeadership();
    }
  }

  async #beginTerm(signal: AbortSignal): Promise<void> {
    try {
      await this.#term.begin(signal);
    } catch (error) {
      if (error instanceof LeadershipLost) throw error;
      // Reads the snapshot anyway, so that the status of new Services can show that the store is unreachable.
      await this.#context.source.synced(signal);
      this.#snapshot = this.#readSnapshot();
      throw error;
    }
  }

  async #reconcile(): Promise<TableOutcome> {
    this.#snapshot = this.#readSnapshot();
    const changedAt = this.#unpublishedSince;
    this.#unpublishedSince = undefined;
    // Suspensions are written before the table, because a proxy that reads a new store must not serve a suspended tenant. Suspensions
    // are written even if the translation fails, so that a tenant whose objects break the translation can be suspended.
    const suspended = this.#options.suspensions.reconcile(this.#snapshot);
    await suspended.catch(() => undefined);
    this.#context.wake('suspensions');
    await parseSettingsInTurns(this.#snapshot.services, this.#context.clock);
    const outcome = await this.#publish(this.#snapshot, changedAt);
    await suspended;
    return outcome;
  }

  async #publish(snapshot: PartialSnapshot, changedAt: number | undefined): Promise<TableOutcome> {
    const { table, fleet } = this.#options;
    const isFirst = table.translation === undefined;
    const outcome = await table.reconcile(snapshot, changedAt).catch((error: unknown) => {
      this.#unpublishedSince = earliest(this.#unpublishedSince, changedAt);
      throw error;
    });
    this.#context.metrics.recordPublish(outcome);
    if (outcome === 'new-epoch' || (isFirst && outcome !== 'not-leader' && outcome !== 'wiped')) {
      fleet?.startGracePeriod();
      this.#context.wake('usage');
      this.#context.wake('rules');
    }
    return outcome;
  }

  /**
   * Returns the snapshot of the source, with the parts that the source does not have: settings, unreachable nodes, records of rules, and
   * the validity of certificates.
   */
  #readSnapshot(): PartialSnapshot {
    const { source, settings } = this.#context;
    const read = source.snapshot();
    const validity = read.secrets && this.#validities.validityOf(read.secrets);
    const { fleet, rules } = this.#options;
    const unreachableNodes = fleet?.unreachableNodes;
    return Object.freeze({
      ...read,
      settings,
      ruleRecords: rules.records,
      ...(validity && { validity }),
      ...(unreachableNodes && { unreachableNodes }),
    });
  }
}

export interface CertificateValidityOptions {
  readonly clock: Clock;
  /** Called when the validity of a certificate of the last call of `validityOf` has changed. */
  readonly onValidityChange: () => void;
}

/** The longest time between two checks of the validity. Timers do not notice when the wall clock is set. */
const MAX_TIMER_MS = 3_600_000;

/** Computes the validity of certificates now, and reports when a certificate becomes valid, counts as expiring, or expires. */
export class CertificateValidityTracker {
  readonly #clock: Clock;
  readonly #onValidityChange: () => void;
  #secrets: readonly SecretObject[] = [];
  #validity: ReadonlyMap<string, CertificateValidity> = new Map();
  /** When `#validity` was computed, in milliseconds since the epoch. */
  #computedAt = 0;
  /** When the validity of a certificate changes next, in milliseconds since the epoch. */
  #nextChangeAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ clock, onValidityChange }: CertificateValidityOptions) {
    this.#clock = clock;
    this.#onValidityChange = onValidityChange;
  }

  /** Returns the map for `Snapshot.validity`. The map is the same object until the validity of a certificate changes. */
  validityOf(secrets: readonly SecretObject[]): ReadonlyMap<string, CertificateValidity> {
    if (secrets !== this.#secrets || !this.#isCurrent()) this.#compute(secrets);
    return this.#validity;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #isCurrent(): boolean {
    const now = this.#clock.now();
    return this.#computedAt <= now && now < this.#nextChangeAt;
  }

  #compute(secrets: readonly SecretObject[]): void {
    const now = this.#clock.now();
    const { validity, nextChangeAt = Number.POSITIVE_INFINITY } = certificateValidityFor(secrets, now);
    const isUnchanged =
      validity.size === this.#validity.size && [...validity].every(([path, each]) => this.#validity.get(path) === each);
    if (!isUnchanged) this.#validity = validity;
    this.#secrets = secrets;
    this.#computedAt = now;
    this.#nextChangeAt = nextChangeAt;
    this.#schedule();
  }

  #schedule(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#nextChangeAt === Number.POSITIVE_INFINITY) return;
    const ms = Math.min(this.#nextChangeAt - this.#clock.now(), MAX_TIMER_MS);
    this.#timer = this.#clock.setTimeout(() => (this.#isCurrent() ? this.#schedule() : this.#onValidityChange()), ms);
  }
}
