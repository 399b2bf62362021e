// Every second, records the counters in the journal, writes the journal to the disk, and reports the usage that the
// ledger has not acknowledged. Reports do not wait for the disk. Reports contain cumulative values, so that a report
// that is lost or sent twice does no harm.
import {
  acknowledgeReport,
  EMPTY_JOURNAL,
  hasIncrease,
  isSlotAcknowledged,
  type Journal,
  minuteOf,
  recordUsage,
  removeSlots,
  type SlotReading,
  slotKey,
  type UsageReport,
  unacknowledgedPoints,
  usageReportFor,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { type Store, StoreError } from '@weir/store';
import { type JournalFiles, journalFileName, unnumberedJournalFileName } from './journal-files.ts';
import { fullReportFor, PastIncarnations } from './past-incarnations.ts';
import type { SlotRegistry } from './slot-registry.ts';

const FINAL_RETRY_INTERVAL_MS = 200;
const RELEASED_SLOT_TTL_MS = 10 * 60_000;
/**
 * How long totals of former owners of slots are kept before a new incarnation starts. A new incarnation lets the ledger
 * drop the bases of the ended incarnation. This time must be shorter than `GONE_SERVICE_TTL_MS`, so that a Service
 * whose row was folded is never counted from an old total again.
 */
const FORMER_OWNER_TTL_MS = 6 * 24 * 3_600_000;
/**
 * After a write of the journal, the next write waits this many times as long as the write took. A journal that is large
 * after a long outage is therefore written less often.
 */
const WRITE_PAUSE_FACTOR = 20;
/** Used by a proxy without a state directory. Neither writes nor removes files. */
const NO_FILES = { write: async (): Promise<void> => undefined, remove: async (): Promise<void> => undefined };

export interface UsageBacklog {
  readonly points: number;
  /** How long ago the ledger last had all usage that was recorded; 0 if the ledger has all usage. */
  readonly ageMs: number;
}

export interface UsageFlusherOptions {
  readonly node: string;
  readonly store: Store;
  readonly slots: SlotRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  /** The highest incarnation found in the state directory, or 0. */
  readonly highestIncarnation: number;
  readonly state: { readonly journalFiles: JournalFiles; readonly pastIncarnations: PastIncarnations } | undefined;
  readonly onIncarnation: (life: number) => void;
}

export class UsageFlusher {
  readonly #options: UsageFlusherOptions;
  readonly #pastIncarnations: PastIncarnations;
  #journal: Journal = EMPTY_JOURNAL;
  #incarnation: number | undefined;
  #minNextIncarnation: number;
  #file: string;
  /** The file of this incarnation before it had a number. Removed as soon as the numbered file is written. */
  #unnumberedFile: string | undefined;
  #written: Journal = EMPTY_JOURNAL;
  #hasDiskFailed = false;
  #nextWriteAt = Number.NEGATIVE_INFINITY;
  /**
   * How many calls of `resendAll` no full report has answered yet. Begins at 1, because a process starts with a full
   * report.
   */
  #pendingResends = 1;
  /** Whether `writeJournal` has recorded the usage since the last `flush`. */
  #isRecorded = false;
  #reportedAt: number | undefined;
  readonly #releasedSlots = new Map<string, number>();
  /** Why the store refused the last report; undefined if it took the report or was unreachable. */
  #refusal: string | undefined;
  /** When the ledger last had all usage that was recorded, in milliseconds of the monotonic clock. */
  #completeAt: number;
  /** When the first slot of this incarnation was freed, in milliseconds of the monotonic clock; undefined if none was. */
  #firstFreedAt: number | undefined;

  constructor(options: UsageFlusherOptions) {
    this.#options = options;
    this.#pastIncarnations =
      options.state?.pastIncarnations ?? new PastIncarnations([], { ...options, files: NO_FILES });
    this.#minNextIncarnation = options.highestIncarnation + 1;
    this.#completeAt = options.clock.monotonic();
    this.#file = unnumberedJournalFileName();
  }

  get incarnation(): number | undefined {
    return this.#incarnation;
  }

  /** What an operator should know about the reports of usage; undefined if there is no problem. */
  get warning(): string | undefined {
    return (
      this.#refusal && `the ledger refuses the usage of this proxy, which keeps the usage and retries: ${this.#refusal}`
    );
  }

  /** The last time (milliseconds since the epoch) at which the ledger had all recorded usage; undefined if there was none yet. */
  get reportedAt(): number | undefined {
    return this.#reportedAt;
  }

  /** The usage that the ledger has not acknowledged: the number of points, and since when the ledger lacks usage. */
  get backlog(): UsageBacklog {
    const points = unacknowledgedPoints(this.#journal) + this.#pastIncarnations.unacknowledgedPoints;
    const ageMs = points === 0 ? 0 : this.#options.clock.monotonic() - this.#completeAt;
    return { points, ageMs };
  }

  /**
   * Records the usage, and writes the journal to the disk if a write is due. Never waits for the store. May be called
   * while `flush` runs, because `flush` may wait for a store that does not answer.
   */
  async writeJournal(): Promise<void> {
    this.#record();
    this.#isRecorded = true;
    if (this.#options.clock.monotonic() >= this.#nextWriteAt) await this.#write();
  }

  /**
   * Reports the usage once. Records the usage first, unless `writeJournal` has recorded it since the last call. Throws if the
   * store is unreachable, in which case no usage is lost.
   */
  async flush(): Promise<void> {
    if (this.#incarnation !== undefined && this.#shouldEndIncarnation()) await this.#endIncarnation(this.#incarnation);
    // `writeJournal` records nothing while it waits for the disk.
    if (!this.#isRecorded) this.#record();
    this.#isRecorded = false;
    const { clock } = this.#options;
    const [recordedAt, now] = [clock.monotonic(), clock.now()];
    try {
      // A store that is full refuses usage, but heartbeats and limits still need a number.
      const refusal = await this.#pastIncarnations.flush().then(() => undefined, ifRefused);
      const life = this.#incarnation ?? (await this.#beginIncarnation());
      if (refusal !== undefined) throw refusal;
      const isComplete = await this.#send(life);
      this.#refusal = undefined;
      if (!isComplete) return;
    } catch (error) {
      this.#refusal = isRefusal(error) ? error.message : undefined;
      throw error;
    }
    this.#completeAt = recordedAt;
    if (this.#pendingResends === 0) this.#reportedAt = now;
  }

  /**
   * Makes the next `flush` report all usage again. To be called after the store was unreachable, because the store may
   * have lost acknowledged usage.
   */
  resendAll(): void {
    this.#pendingResends += 1;
    this.#pastIncarnations.resendAll();
  }

  /**
   * Flushes until the ledger has all usage or `withinMs` has passed. Returns why the ledger does not have all usage, or
   * undefined if it has all. `flush` and `writeJournal` must not be called before `finish` has settled.
   */
  async finish(withinMs: number): Promise<string | undefined> {
    const { clock, node } = this.#options;
    const end = clock.monotonic() + withinMs;
    let reason = 'the ledger is being restored';
    do {
      await this.writeJournal();
      try {
        await this.flush();
        if (usageReportFor(this.#journal, { node, life: this.#incarnation ?? 0 }) === undefined) {
          await this.#write();
          return undefined;
        }
      } catch (error) {
        reason = errorMessage(error);
      }
      await wait(clock, FINAL_RETRY_INTERVAL_MS);
    } while (clock.monotonic() < end);
    await this.#write();
    return reason;
  }

  /** Reports whether the ledger has acknowledged this reading of a released slot. */
  isSlotAcknowledged(reading: SlotReading): boolean {
    const { counters } = reading;
    if (!hasIncrease(ZERO_COUNTERS, counters)) return true;
    const known = this.#journal.slots.get(slotKey(reading))?.acknowledged;
    return known !== undefined && isSlotAcknowledged(this.#journal, reading) && !hasIncrease(known, counters);
  }

  /**
   * Removes slots from the journal ten minutes after they were freed. During these minutes, their usage can be reported
   * again if the store loses it. `keys` are the slots that have just been freed.
   */
  forget(keys: readonly string[]): void {
    const { clock, slots } = this.#options;
    const now = clock.monotonic();
    if (keys.length > 0) this.#firstFreedAt ??= now;
    for (const key of keys) this.#releasedSlots.set(key, now + RELEASED_SLOT_TTL_MS);
    const due = [...this.#releasedSlots].filter(([, at]) => at <= now).map(([key]) => key);
    for (const key of due) this.#releasedSlots.delete(key);
    const gone = due.filter((key) => !slots.has(key));
    if (gone.length > 0) this.#journal = removeSlots(this.#journal, gone);
  }

  /**
   * Records readings in the journal. Skips readings without a tenant, because they cannot be billed (see
   * `SlotOwner.tenant`).
   */
  #record(readings: readonly SlotReading[] = this.#options.slots.readings()): void {
    const billed = readings.filter((reading) => reading.tenant !== '');
    this.#journal = recordUsage(this.#journal, billed, minuteOf(this.#options.clock.now()));
  }

  /** Whether the totals of too many former owners are kept, or a total has been kept for too long. */
  #shouldEndIncarnation(): boolean {
    const { slots, clock } = this.#options;
    const isOld = this.#firstFreedAt !== undefined && clock.monotonic() - this.#firstFreedAt >= FORMER_OWNER_TTL_MS;
    return isOld || slots.isFull;
  }

  /** Passes the usage so far to `PastIncarnations`. Later usage belongs to the next incarnation. */
  async #endIncarnation(life: number): Promise<void> {
    const { slots, clock } = this.#options;
    this.#record(slots.startIncarnation());
    const ended = { file: this.#file, record: { incarnation: life, journal: this.#journal, recordedAt: clock.now() } };
    this.#journal = EMPTY_JOURNAL;
    this.#written = EMPTY_JOURNAL;
    this.#incarnation = undefined;
    this.#firstFreedAt = undefined;
    this.#file = unnumberedJournalFileName();
    await this.#pastIncarnations.add(ended);
  }

  /** Writes the journal to the file of the current incarnation. Logs a failure; a later call tries again. */
  async #write(): Promise<void> {
    const { state, clock, log } = this.#options;
    const journal = this.#journal;
    if (state === undefined || journal === this.#written) return;
    const startedAt = clock.monotonic();
    const file = this.#file;
    try {
      await state.journalFiles.write(file, { incarnation: this.#incarnation, journal, recordedAt: clock.now() });
      // Another incarnation, with another file, may have begun during the write.
      if (file === this.#file) {
        if (this.#incarnation !== undefined) await this.#removeUnnumberedFile(state.journalFiles);
        // Set last, so that a removal that failed is tried again.
        this.#written = journal;
      }
      this.#hasDiskFailed = false;
    } catch (error) {
      if (!this.#hasDiskFailed)
        log.error({ reason: errorMessage(error) }, 'failed to write the usage journal; retrying');
      this.#hasDiskFailed = true;
    } finally {
      this.#nextWriteAt = clock.monotonic() + (clock.monotonic() - startedAt) * WRITE_PAUSE_FACTOR;
    }
  }

  async #removeUnnumberedFile(files: JournalFiles): Promise<void> {
    if (this.#unnumberedFile === undefined) return;
    await files.remove(this.#unnumberedFile);
    this.#unnumberedFile = undefined;
  }

  async #beginIncarnation(): Promise<number> {
    const { store, node, onIncarnation } = this.#options;
    const life = await store.heartbeats.beginIncarnation(node, this.#minNextIncarnation);
    this.#unnumberedFile = this.#file;
    this.#incarnation = life;
    this.#minNextIncarnation = life + 1;
    this.#file = journalFileName(life);
    this.#written = EMPTY_JOURNAL;
    this.#pendingResends += 1;
    await this.#write();
    onIncarnation(life);
    return life;
  }

  /**
   * Sends the usage that the ledger has not acknowledged. Returns whether the ledger now has all usage that was
   * recorded when the call began.
   */
  async #send(life: number): Promise<boolean> {
    const { node, clock, store } = this.#options;
    const resends = this.#pastIncarnations.isReported ? this.#pendingResends : 0;
    const origin = { node, life, minute: minuteOf(clock.now()) };
    const report = resends > 0 ? fullReportFor(this.#journal, origin) : usageReportFor(this.#journal, origin);
    if (report === undefined) return this.#pastIncarnations.isReported;
    const result = await store.usage.flush(report);
    switch (result.kind) {
      case 'accepted':
        this.#journal = acknowledgeReport(this.#journal, report);
        this.#pendingResends -= resends;
        return this.#pastIncarnations.isReported;
      case 'seeding':
        // The store was wiped, and may have lost acknowledged usage.
        if (this.#pendingResends === 0) this.resendAll();
        return false;
      case 'folded':
        this.#onFolded(report);
        return false;
    }
  }

  /**
   * Drops the unreported usage of this incarnation, because the controller considered this proxy dead, and the ledger
   * accepts no more reports of the incarnation. The ledger may already have counted the usage in `report`. If the usage
   * were reported under a new incarnation, it could be billed twice.
   */
  #onFolded(report: UsageReport): void {
    const { log, slots } = this.#options;
    log.warn(
      { life: report.life, slots: report.slots.length },
      'the ledger accepts no more usage of this incarnation, which the controller considered dead; dropping its unreported usage',
    );
    slots.startIncarnation();
    this.#journal = EMPTY_JOURNAL;
    this.#incarnation = undefined;
    this.#firstFreedAt = undefined;
  }
}

function isRefusal(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'REFUSED';
}

/** Returns the error if the store has refused a call; throws any other error. */
function ifRefused(error: unknown): StoreError {
  if (isRefusal(error)) return error;
  throw error;
}
