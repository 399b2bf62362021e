// Keeps this proxy's shares of fleet-wide limits. The main thread measures what the clients of each tenant and Service
// need, exchanges claims with the other proxies through the store, and writes the shares into the limiter state.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LeasedResource } from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger, Loop, type Timer, wait } from '@weir/runtime';
import { LEASE_REGISTRATION_MS, type LeaseName, MAX_LEASES_PER_EXCHANGE, type Store, StoreError } from '@weir/store';
import { Lease, leaseKey, requestToReturn } from './lease.ts';
import { RATE_WINDOW_MS } from './lease-demand.ts';
import type { LimiterRegistry, LimitShare } from './limiter-registry.ts';
import { OtherIncarnations } from './other-incarnations.ts';
import { type LeaseOfRow, OwnLeases } from './own-leases.ts';
import type { TableLimits } from './table-limits.ts';

const TICK_MS = 50;
const MAX_TICK_MS = 1_000;
const MIN_GAP_MS = 20;
/** After this time without an answer of the store, the reports of the other proxies are out of date. */
const MAX_ANSWER_MS = 1_000;
/** How many owners are measured in one turn of the event loop. Measuring them takes about a millisecond. */
const OWNERS_PER_TURN = 100;
/** The lease client waits 20 times as long as a tick's work took, at most `MAX_SILENCE_MS`, so that it works about a 20th of the time. */
const WORK_TIME_FACTOR = 20;
/** The lease client waits twice as long as the store took to answer, at most `MAX_TICK_MS`, so that a slow store gets fewer calls. */
const CALL_TIME_FACTOR = 2;
/**
 * After this time without a call, the lease client calls the store although no lease is due. The call shows the controller that the
 * proxy lives, and lets the proxies divide a first limit at once.
 */
const MAX_SILENCE_MS = 500;
/**
 * How long a proxy that starts waits for its first shares before it opens its listeners. The other proxies usually hear of the
 * new proxy, and lower their shares, within half of this time.
 */
const MAX_START_MS = 1_000;

const WHOLE_LIMIT: LimitShare = { share: Number.POSITIVE_INFINITY };

const FORBIDDEN_WARNING =
  'this proxy lets each tenant use the whole limits, because the Redis user lacks the right to the keys lease*; add the right as docs/redis.md says';

/** The shares of this proxy by lease (`leaseKey`), for the state directory. */
export type SavedShares = ReadonlyMap<string, number>;

export interface LeaseClientOptions {
  readonly node: string;
  readonly store: Pick<Store, 'leases' | 'connection'>;
  readonly registry: Pick<LimiterRegistry, 'demand' | 'setShare'>;
  readonly limits: Pick<TableLimits, 'leased'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** The shares that an earlier incarnation of the node had. */
  readonly savedShares: SavedShares | undefined;
  /** Returns the number of this incarnation; undefined while it has none. */
  readonly incarnation: () => number | undefined;
  readonly isDraining: () => boolean;
  /** Called when `mayOpenListeners` of the lease client becomes true. */
  readonly onMayOpenListeners: () => void;
}

export class LeaseClient {
  readonly #options: LeaseClientOptions;
  readonly #loop: Loop;
  readonly #leases = new OwnLeases();
  readonly #others: OtherIncarnations;
  /** Runs from the first lease on. */
  #startTimer: Timer | undefined;
  #hasStartTimedOut = false;
  #incarnation: number | undefined;
  #sequence = 0;
  #savedShares: SavedShares | undefined;
  /** Whether shares were exchanged, so that the shares of the last incarnation are out of date. */
  #hasExchanged = false;
  #calledAt = Number.NEGATIVE_INFINITY;
  /** False until the listeners open. Until then, the proxy uses only granted shares. */
  #mayHaveClients = false;
  #nextTickAt = Number.NEGATIVE_INFINITY;
  /** Whether the next run must not wait. */
  #isUrgent = false;
  #raisesFrom = Number.NEGATIVE_INFINITY;
  /** Whether the last exchange failed. Until an exchange succeeds, shares are not lowered, because the store could not raise them again. */
  #hasFailed = false;
  #isForbidden = false;
  /** Whether the store is unreachable or the last exchange failed. */
  #isIsolated = false;
  #couldOpenListeners = true;

  constructor(options: LeaseClientOptions) {
    this.#options = options;
    const { clock, log, node, store } = options;
    this.#others = new OtherIncarnations({ node, leases: store.leases, clock, isDraining: options.isDraining });
    this.#loop = new Loop({
      run: () => this.#tick(),
      gapMs: MIN_GAP_MS,
      // Without leases, the client only reports to the store that its incarnation is alive.
      resyncMs: () => (this.#leases.isEmpty ? MAX_SILENCE_MS : TICK_MS),
      retryMs: [TICK_MS, MAX_TICK_MS],
      clock,
      onError: (error, { failures }) =>
        log[failures === 1 ? 'warn' : 'debug'](
          { reason: errorMessage(error) },
          'failed to exchange shares of limits; keeping the last shares and retrying',
        ),
    });
  }

  start(): void {
    this.#loop.trigger();
  }

  /** To be called when limits may have changed. */
  onLimitsChanged(): void {
    if (this.#findLeases()) this.#runSoon();
  }

  /** To be called when the store is reachable again. The store may have lost what it granted last. */
  onStoreReady(): void {
    this.#raisesFrom = this.#options.clock.monotonic() + LEASE_REGISTRATION_MS;
    this.#leases.makeAllDue();
    this.#runSoon();
  }

  /**
   * Whether the listeners may open: the store has granted a share of each limit, is unreachable or refuses leases, or
   * `MAX_START_MS` has passed.
   */
  get mayOpenListeners(): boolean {
    const { store } = this.#options;
    return (
      this.#isForbidden ||
      store.connection === 'away' ||
      store.connection === 'closed' ||
      this.#hasStartTimedOut ||
      [...this.#leases].every(({ lease }) => lease.hasGrantedShare)
    );
  }

  /**
   * To be called before the listeners open. Uses the saved share, or a tenth, of each limit of which the store has granted no
   * share. In this case the store is away or raises no shares after a loss of its data, or the other proxies do not answer.
   */
  beforeListenersOpen(): void {
    this.#mayHaveClients = true;
    let ungrantedLimits = 0;
    for (const { row, lease } of this.#leases) {
      if (lease.useUngrantedShare(this.#savedShareOf(lease.name))) ungrantedLimits += 1;
      this.#writeShare(row, lease);
    }
    if (ungrantedLimits > 0 && !this.#isForbidden)
      this.#options.log.warn(
        { limits: ungrantedLimits },
        'serving without granted shares of limits; using the saved share or a tenth of each limit',
      );
    if (this.#options.store.connection !== 'ready') this.#setIsolated(true);
  }

  /** To be called when this proxy alone serves the node. Releases the shares of incarnations of the node that were killed. */
  releaseOthers(): void {
    this.#others.startReleasing();
  }

  /** The number of leases that are due for an exchange. Grows to all leases while the store is unreachable. */
  get pendingExchanges(): number {
    return this.#leases.dueAt(this.#options.clock.monotonic()) + this.#leases.toReturn.size;
  }

  /** What an operator should know about the leases; undefined if there is no problem. */
  get warning(): string | undefined {
    return this.#isForbidden ? FORBIDDEN_WARNING : undefined;
  }

  /**
   * The shares to save; another object after each change. Undefined before the first exchange. While this proxy drains, returns the shares
   * from before the drain, because the next proxy of the node may start without the store and then needs them.
   */
  get savedShares(): SavedShares | undefined {
    const saved = this.#savedShares;
    if (!this.#hasExchanged || this.#options.isDraining()) return saved;
    const shares = new Map([...this.#leases].map(({ lease }) => [leaseKey(lease.name), lease.limitShare.share]));
    const isSame = saved?.size === shares.size && [...shares].every(([key, share]) => saved.get(key) === share);
    if (!isSame) this.#savedShares = shares;
    return this.#savedShares;
  }

  /** Yields this proxy's shares of the limits of tenants. */
  *tenantShares(): Iterable<{ readonly tenant: string; readonly resource: LeasedResource; readonly share: number }> {
    for (const { lease } of this.#leases) {
      const { owner, resource } = lease.name;
      const share = this.#isForbidden ? lease.limit : Math.min(lease.limit, lease.limitShare.share);
      if (owner.kind === 'tenant') yield { tenant: owner.name, resource, share };
    }
  }

  /**
   * Gives all shares back and ends the exchanges. To be called when no connection is open any more. Takes up to a second.
   * Meanwhile, each exchange gives back the units that no longer count for the second.
   */
  async close(): Promise<void> {
    const { store, node, clock } = this.#options;
    const endsBy = clock.monotonic() + RATE_WINDOW_MS;
    while (this.#incarnation !== undefined && this.#hasAdmittedInSecond && clock.monotonic() < endsBy)
      await wait(clock, TICK_MS);
    await this.#loop.close();
    this.#startTimer?.cancel();
    if (this.#incarnation === undefined) return;
    // If the release fails, the store takes the shares back after a while.
    await store.leases.release(node, this.#incarnation).catch(() => undefined);
  }

  /** Whether clients of the last second still count for a rate. While they count, no other proxy may use their units. */
  get #hasAdmittedInSecond(): boolean {
    const rows = [...this.#leases.owners].map(({ owner }) => this.#options.registry.demand(owner.row));
    return rows.some(({ admittedNew, admittedRequests }) => admittedNew + admittedRequests > 0);
  }

  async #tick(): Promise<void> {
    const { clock, store, incarnation } = this.#options;
    if (clock.monotonic() < this.#nextTickAt) return;
    try {
      const life = incarnation();
      if (store.connection !== 'ready' || life === undefined) this.#setIsolated(true);
      else await this.#exchangeAs(life);
    } finally {
      this.#reportListeners();
    }
  }

  #reportListeners(): void {
    const { mayOpenListeners } = this;
    if (mayOpenListeners && !this.#couldOpenListeners) this.#options.onMayOpenListeners();
    this.#couldOpenListeners = mayOpenListeners;
  }

  async #exchangeAs(incarnation: number): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    this.#isUrgent = false;
    if (incarnation !== this.#incarnation) this.#beginIncarnation(incarnation);
    const due = await this.#measure();
    const workMs = clock.monotonic() - startedAt;
    const pauseMs = Math.min(MAX_SILENCE_MS, workMs * WORK_TIME_FACTOR);
    this.#pause(pauseMs);
    // Without leases, runs are `MAX_SILENCE_MS` apart, and each call begins a little after its run.
    const silenceMs = this.#leases.isEmpty ? MAX_SILENCE_MS - TICK_MS : MAX_SILENCE_MS;
    const isSilent = startedAt - this.#calledAt >= silenceMs;
    const hasRequests = due.length > 0 || this.#leases.toReturn.size > 0;
    if (!hasRequests && !isSilent && !this.#others.isDue(startedAt)) return;
    try {
      await this.#exchange(incarnation, due);
      this.#hasFailed = false;
      this.#hasExchanged ||= due.length > 0;
      this.#setForbidden(false);
      this.#setIsolated(false);
    } catch (error) {
      this.#hasFailed = true;
      // The store may have taken none, some or all of the requests.
      for (const { lease } of due) lease.makeDue();
      if (!(error instanceof StoreError) || error.code !== 'FORBIDDEN') {
        this.#setIsolated(true);
        throw error;
      }
      this.#setForbidden(true, error);
      this.#nextTickAt = clock.monotonic() + MAX_TICK_MS;
      return;
    }
    if (this.#others.isDue(clock.monotonic())) await this.#others.releaseEnded(incarnation);
    const callMs = clock.monotonic() - startedAt - workMs;
    this.#pause(Math.max(pauseMs, Math.min(MAX_TICK_MS, callMs * CALL_TIME_FACTOR)));
  }

  #runSoon(): void {
    this.#isUrgent = true;
    this.#nextTickAt = Number.NEGATIVE_INFINITY;
    this.#loop.trigger();
  }

  /** Starts no run for `ms`, unless the limits have changed or the store is ready again since the run began. */
  #pause(ms: number): void {
    if (ms > TICK_MS && !this.#isUrgent) this.#nextTickAt = this.#options.clock.monotonic() + ms;
  }

  #beginIncarnation(incarnation: number): void {
    if (this.#incarnation !== undefined) this.#others.addFormerIncarnation(this.#incarnation);
    this.#incarnation = incarnation;
    this.#sequence = 0;
    this.#leases.makeAllDue();
  }

  /**
   * Creates and removes leases as limits are set and removed, and writes all shares into the limiter state. Returns whether a limit has
   * changed.
   */
  #findLeases(): boolean {
    const { limits, clock } = this.#options;
    const hasChanged = this.#leases.update(limits.leased(), (name, limit) => {
      this.#startTimer ??= clock.setTimeout(() => {
        this.#hasStartTimedOut = true;
        this.#reportListeners();
      }, MAX_START_MS);
      this.#couldOpenListeners = false;
      const lease = new Lease(name, limit);
      if (this.#mayHaveClients) lease.useUngrantedShare(this.#savedShareOf(name));
      return lease;
    });
    if (hasChanged) for (const { row, lease } of this.#leases) this.#writeShare(row, lease);
    return hasChanged;
  }

  #savedShareOf(name: LeaseName): number | undefined {
    return this.#hasExchanged ? undefined : this.#options.savedShares?.get(leaseKey(name));
  }

  #writeShare(row: number, lease: Lease): void {
    lease.isIsolated = this.#isIsolated;
    const share = this.#isForbidden ? WHOLE_LIMIT : lease.limitShare;
    this.#options.registry.setShare(row, lease.name.resource, share);
  }

  /** Measures what the clients of all owners need, and returns the leases to exchange. */
  async #measure(): Promise<readonly LeaseOfRow[]> {
    const { registry, clock, isDraining } = this.#options;
    const due: LeaseOfRow[] = [];
    let measured = 0;
    let hasLeft = false;
    for (const { owner, window, leases } of this.#leases.owners) {
      measured += 1;
      if (measured % OWNERS_PER_TURN === 0) await nextTurn();
      const now = clock.monotonic();
      const { row, isLeaving } = owner;
      const demand = registry.demand(row);
      hasLeft ||= isLeaving && demand.open + demand.admittedNew + demand.admittedRequests === 0;
      window.add(demand, now);
      for (const [resource, lease] of leases) {
        lease.update(window.demandFor(resource, lease.limit), isLeaving || isDraining());
        if (lease.isDue(now)) due.push({ row, window, lease });
      }
    }
    if (hasLeft) this.#findLeases();
    return this.#leases.withLeasesDueSoon(due, clock.monotonic());
  }

  async #exchange(incarnation: number, due: readonly LeaseOfRow[]): Promise<void> {
    const { node, store, clock, registry } = this.#options;
    const pending = [...due];
    do {
      const part = pending.splice(0, MAX_LEASES_PER_EXCHANGE).filter(({ lease }) => this.#leases.has(lease));
      const returned = [...this.#leases.toReturn].slice(0, MAX_LEASES_PER_EXCHANGE - part.length);
      const now = clock.monotonic();
      const requests = part.map(({ row, window, lease }) =>
        lease.request({
          now,
          mayLower: !this.#hasFailed,
          applyShare: () => {
            this.#writeShare(row, lease);
            window.add(registry.demand(row), clock.monotonic());
            return window.demandFor(lease.name.resource, lease.limit).used;
          },
        }),
      );
      this.#calledAt = now;
      const isolation = clock.setTimeout(() => this.#setIsolated(true), MAX_ANSWER_MS);
      this.#sequence += 1;
      const answer = store.leases.exchange({
        node,
        life: incarnation,
        sequence: this.#sequence,
        mayRaise: now >= this.#raisesFrom,
        requests: [...requests, ...returned.map(([, name]) => requestToReturn(name))],
      });
      const grants = await answer.finally(() => isolation.cancel());
      for (const [index, { lease, row }] of part.entries()) {
        const grant = grants[index];
        // The limits may have changed while the client waited for the store.
        if (grant === undefined || !this.#leases.has(lease)) continue;
        lease.apply(grant);
        this.#writeShare(row, lease);
      }
      for (const [key] of returned) this.#leases.toReturn.delete(key);
      if (pending.length > 0) await nextTurn();
    } while (pending.length > 0 || this.#leases.toReturn.size > 0);
  }

  #setForbidden(isForbidden: boolean, error?: StoreError): void {
    if (isForbidden === this.#isForbidden) return;
    const { log } = this.#options;
    this.#isForbidden = isForbidden;
    if (isForbidden) log.warn({ reason: errorMessage(error) }, FORBIDDEN_WARNING);
    else log.info('limits are divided among the proxies again');
    this.#leases.makeAllDue();
    for (const { row, lease } of this.#leases) this.#writeShare(row, lease);
  }

  /** Does nothing before the proxy serves, because its clients use no shares yet. */
  #setIsolated(isIsolated: boolean): void {
    if (isIsolated === this.#isIsolated || !this.#mayHaveClients) return;
    this.#isIsolated = isIsolated;
    for (const { row, lease } of this.#leases) this.#writeShare(row, lease);
  }
}
