// Decides when each health check begins. Sets no timers. `now` is the time of a monotonic clock in milliseconds.
import { type RateLimit, takeWithinRate } from '@weir/model/data-plane';

/** The rate limit of all checks: 480 checks of cost 1 per second and a burst of 20, thus at most 500 in any second. */
const CHECK_RATE: RateLimit = { ratePerSecond: 480, burstNs: 20n * BigInt(Math.ceil(1_000_000_000 / 480)) };
/** The maximum number of checks that run at the same time. */
const MAX_RUNNING_CHECKS = 512;
/** Due times are grouped into slots of this length. */
const SLOT_MS = 10;
/** How far ahead `wakeAt` searches for the next due check. */
const LOOKAHEAD_MS = 1_000;
const JITTER_SHARE = 0.1;
/**
 * A check counts as late if its delay exceeds this time plus a tenth of its interval. A busy main thread causes shorter
 * delays even if the rate limit is not reached.
 */
const MAX_UNCOUNTED_DELAY_MS = 50;

export interface ScheduledCheck {
  readonly key: string;
  /**
   * The tenant, or the Service's UID while two policies claim the Service's namespace. Groups take turns, so that the
   * checks of one tenant do not displace the checks of another.
   */
  readonly group: string;
  readonly intervalMs: number;
  /** How long the check occupies the main thread, in multiples of a plain check. At most the burst of `CHECK_RATE`. */
  readonly cost: number;
}

interface ScheduleEntry extends ScheduledCheck {
  dueAt: number;
  /** The turns that the group has spent on this check. A check begins in the turn in which they reach its `cost`. */
  turns: number;
  state: 'waiting' | 'ready' | 'running' | 'removed';
}

/** A check that has begun. Must be passed to `end` when the check is over. */
export type RunningCheck = Pick<ScheduledCheck, 'key' | 'group'>;

export class CheckSchedule {
  readonly #random: () => number;
  readonly #entries = new Map<string, ScheduleEntry>();
  /** Waiting checks by the number of the slot in which they are due. */
  readonly #slots = new Map<number, Set<ScheduleEntry>>();
  /**
   * Due checks by group. The group whose turn is next comes first; in each group, the checks are in the order in which
   * they became due.
   */
  readonly #dueByGroup = new Map<string, Set<ScheduleEntry>>();
  readonly #runningByGroup = new Map<string, number>();
  #runningCount = 0;
  /** The `paidUntil` of the token bucket: see `takeWithinRate`. */
  #paidUntil: bigint;
  #slot: number;
  #late = 0;

  constructor(random: () => number, now: number) {
    this.#random = random;
    this.#paidUntil = nanoseconds(now) - CHECK_RATE.burstNs;
    this.#slot = slotOf(now);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The number of checks that began late. */
  get late(): number {
    return this.#late;
  }

  /**
   * Adds a check. It first runs at a random time within its interval, so that checks that are added at the same time do
   * not run at the same time.
   */
  add(check: ScheduledCheck, now: number): void {
    const entry: ScheduleEntry = {
      ...check,
      dueAt: now + this.#random() * check.intervalMs,
      turns: 0,
      state: 'waiting',
    };
    this.#entries.set(check.key, entry);
    this.#wait(entry);
  }

  remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    if (entry.state === 'waiting') take(this.#slots, slotOf(entry.dueAt), entry);
    if (entry.state === 'ready') take(this.#dueByGroup, entry.group, entry);
    entry.state = 'removed';
  }

  /** Returns the next check to begin now, or undefined if no check is due or the limits allow none. */
  begin(now: number): RunningCheck | undefined {
    this.#collectDue(now);
    for (const [group, entries] of this.#dueByGroup) {
      if (!this.#mayRun(group)) continue;
      const entry = entries.values().next().value as ScheduleEntry;
      if (entry.turns + 1 < entry.cost) {
        entry.turns += 1;
        this.#nextTurn(group, entries);
        continue;
      }
      const paidUntil = takeWithinRate(this.#paidUntil, entry.cost, { limit: CHECK_RATE, now: nanoseconds(now) });
      if (paidUntil === undefined) return undefined;
      this.#paidUntil = paidUntil;
      entries.delete(entry);
      this.#nextTurn(group, entries);
      if (now - entry.dueAt > entry.intervalMs * JITTER_SHARE + MAX_UNCOUNTED_DELAY_MS) this.#late += 1;
      entry.state = 'running';
      entry.turns = 0;
      entry.dueAt = now + entry.intervalMs * (1 - JITTER_SHARE + 2 * JITTER_SHARE * this.#random());
      this.#runningCount += 1;
      this.#runningByGroup.set(group, (this.#runningByGroup.get(group) ?? 0) + 1);
      return entry;
    }
    return undefined;
  }

  end(check: RunningCheck, now: number): void {
    const entry = check as ScheduleEntry;
    this.#runningCount -= 1;
    const left = (this.#runningByGroup.get(entry.group) ?? 1) - 1;
    if (left === 0) this.#runningByGroup.delete(entry.group);
    else this.#runningByGroup.set(entry.group, left);
    if (entry.state !== 'running') return;
    entry.state = 'waiting';
    entry.dueAt = Math.max(entry.dueAt, now);
    this.#wait(entry);
  }

  /**
   * Returns the time at which to call `begin` again, or undefined if no check can begin before another check ends or is
   * added. `begin` must also be called whenever a check ends or is added.
   */
  wakeAt(now: number): number | undefined {
    if ([...this.#dueByGroup.keys()].some((group) => this.#mayRun(group))) return now + SLOT_MS;
    if (this.#slots.size === 0) return undefined;
    const first = this.#slot;
    for (let slot = first; slot < first + LOOKAHEAD_MS / SLOT_MS; slot += 1) {
      if (this.#slots.has(slot)) return Math.max(now, slot * SLOT_MS);
    }
    return now + LOOKAHEAD_MS;
  }

  /**
   * Reports whether a group may run one more check: only while it runs fewer checks than all groups together may still
   * begin. A tenant with hanging endpoints therefore does not block the checks of other tenants.
   */
  #mayRun(group: string): boolean {
    return (this.#runningByGroup.get(group) ?? 0) < MAX_RUNNING_CHECKS - this.#runningCount;
  }

  #nextTurn(group: string, entries: Set<ScheduleEntry>): void {
    this.#dueByGroup.delete(group);
    if (entries.size > 0) this.#dueByGroup.set(group, entries);
  }

  #collectDue(now: number): void {
    for (const last = slotOf(now); this.#slot <= last && this.#slots.size > 0; this.#slot += 1) {
      const entries = this.#slots.get(this.#slot);
      if (entries === undefined) continue;
      this.#slots.delete(this.#slot);
      for (const entry of entries) {
        entry.state = 'ready';
        put(this.#dueByGroup, entry.group, entry);
      }
    }
    this.#slot = Math.max(this.#slot, slotOf(now));
  }

  #wait(entry: ScheduleEntry): void {
    // Moves a check that is due before `#slot` to `#slot`, because earlier slots are not searched again.
    entry.dueAt = Math.max(entry.dueAt, this.#slot * SLOT_MS);
    put(this.#slots, slotOf(entry.dueAt), entry);
  }
}

const slotOf = (at: number): number => Math.floor(at / SLOT_MS);
const nanoseconds = (ms: number): bigint => BigInt(Math.round(ms * 1_000_000));

function put<K>(sets: Map<K, Set<ScheduleEntry>>, key: K, entry: ScheduleEntry): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([entry]));
  else set.add(entry);
}

function take<K>(sets: Map<K, Set<ScheduleEntry>>, key: K, entry: ScheduleEntry): void {
  const set = sets.get(key);
  set?.delete(entry);
  if (set?.size === 0) sets.delete(key);
}
