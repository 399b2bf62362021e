// Once a second: what was counted goes into the journal, the journal to the disk, and what the ledger lacks to the ledger.
// Reports carry cumulative values, so that one lost or sent twice changes nothing.
import {
  acknowledgeReport,
  EMPTY_JOURNAL,
  isSlotAcknowledged,
  type Journal,
  minuteOf,
  recordUsage,
  removeSlots,
  type SlotReading,
  slotKey,
  type UsageReport,
  usageReportFor,
} from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import type { Store } from '@weir/store';
import { type JournalFiles, journalFileName } from './journal-files.ts';
import { fullReportFor, PastIncarnations } from './past-incarnations.ts';
import type { SlotRegistry } from './slot-registry.ts';

const FINAL_RETRY_INTERVAL_MS = 200;
const RELEASED_SLOT_TTL_MS = 10 * 60_000;
/** Writing the journal may take this part of the time: after a long outage it is large, and written less often. */
const WRITE_TIME_DIVISOR = 20;
/** Of a proxy without a state directory. */
const NO_FILES = { write: async (): Promise<void> => undefined, remove: async (): Promise<void> => undefined };

export interface UsageFlusherOptions {
  readonly node: string;
  readonly store: Store;
  readonly slots: SlotRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly startedAt: number;
  /** A number above every one that was ever used here. */
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
  #written: Journal = EMPTY_JOURNAL;
  #hasDiskFailed = false;
  #nextWriteAt = Number.NEGATIVE_INFINITY;
  #pendingResends = 0;
  readonly #releasedSlots = new Map<string, number>();

  constructor(options: UsageFlusherOptions) {
    this.#options = options;
    this.#pastIncarnations =
      options.state?.pastIncarnations ?? new PastIncarnations([], { ...options, files: NO_FILES });
    this.#minNextIncarnation = options.highestIncarnation + 1;
    this.#file = journalFileName(undefined, options.startedAt);
  }

  get incarnation(): number | undefined {
    return this.#incarnation;
  }

  /** One round; throws when the store is away: nothing is lost by it. */
  async flush(): Promise<void> {
    if (this.#options.slots.isFull && this.#incarnation !== undefined) await this.#endIncarnation(this.#incarnation);
    this.#record();
    if (this.#options.clock.monotonic() >= this.#nextWriteAt) await this.#write();
    await this.#pastIncarnations.flush();
    const life = this.#incarnation ?? (await this.#beginIncarnation());
    await this.#send(life);
  }

  /** The store was away: what it had acknowledged may be lost, and everything is said once more. */
  resendAll(): void {
    this.#pendingResends += 1;
    this.#pastIncarnations.resendAll();
  }

  /** The last rounds, until the ledger has it all or the time is over; returns why it has not. Nothing else may flush. */
  async finish(withinMs: number): Promise<string | undefined> {
    const { clock, node } = this.#options;
    const end = clock.monotonic() + withinMs;
    let reason = 'the ledger is being restored';
    do {
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

  /** Whether the ledger has this value of a slot that nobody counts in any more. */
  isSlotAcknowledged(reading: SlotReading): boolean {
    const known = this.#journal.slots.get(slotKey(reading))?.acknowledged;
    const { receivedBytes, sentBytes, connections, requests } = reading.counters;
    const hasNothing = receivedBytes + sentBytes + connections + requests === 0;
    return (
      hasNothing ||
      (isSlotAcknowledged(this.#journal, reading) &&
        known !== undefined &&
        known.receivedBytes >= receivedBytes &&
        known.sentBytes >= sentBytes &&
        known.connections >= connections &&
        known.requests >= requests)
    );
  }

  /** Nobody counts under these keys any more. They are still said for a while, should the store lose them. */
  forget(keys: readonly string[]): void {
    const { clock, slots } = this.#options;
    const now = clock.monotonic();
    for (const key of keys) this.#releasedSlots.set(key, now + RELEASED_SLOT_TTL_MS);
    const due = [...this.#releasedSlots].filter(([, at]) => at <= now).map(([key]) => key);
    for (const key of due) this.#releasedSlots.delete(key);
    const gone = due.filter((key) => !slots.has(key));
    if (gone.length > 0) this.#journal = removeSlots(this.#journal, gone);
  }

  /** Under no tenant's name nothing can be billed: see `SlotBook`. */
  #record(readings: readonly SlotReading[] = this.#options.slots.readings()): void {
    const billed = readings.filter((reading) => reading.tenant !== '');
    this.#journal = recordUsage(this.#journal, billed, minuteOf(this.#options.clock.now()));
  }

  /** All that it counted belongs to it, and is brought to the ledger under its number; the next one counts what comes now. */
  async #endIncarnation(life: number): Promise<void> {
    const { slots, clock, startedAt } = this.#options;
    this.#record(slots.startIncarnation());
    const ended = { file: this.#file, record: { incarnation: life, journal: this.#journal, recordedAt: clock.now() } };
    this.#journal = EMPTY_JOURNAL;
    this.#written = EMPTY_JOURNAL;
    this.#incarnation = undefined;
    this.#file = journalFileName(undefined, startedAt);
    await this.#pastIncarnations.add(ended);
  }

  async #write(): Promise<void> {
    const { state, clock, log } = this.#options;
    const journal = this.#journal;
    if (state === undefined || journal === this.#written) return;
    const startedAt = clock.monotonic();
    try {
      await state.journalFiles.write(this.#file, { incarnation: this.#incarnation, journal, recordedAt: clock.now() });
      this.#written = journal;
      this.#hasDiskFailed = false;
    } catch (error) {
      if (!this.#hasDiskFailed) log.error({ reason: errorMessage(error) }, 'the journal of usage cannot be written');
      this.#hasDiskFailed = true;
    }
    this.#nextWriteAt = clock.monotonic() + (clock.monotonic() - startedAt) * WRITE_TIME_DIVISOR;
  }

  async #beginIncarnation(): Promise<number> {
    const { store, node, state, startedAt, onIncarnation } = this.#options;
    const life = await store.heartbeats.beginIncarnation(node, this.#minNextIncarnation);
    const unnumbered = this.#file;
    this.#incarnation = life;
    this.#minNextIncarnation = life + 1;
    this.#file = journalFileName(life, startedAt);
    this.#written = EMPTY_JOURNAL;
    await this.#write();
    if (this.#written === this.#journal) await state?.journalFiles.remove(unnumbered);
    onIncarnation(life);
    return life;
  }

  async #send(life: number): Promise<void> {
    const { node, clock, store } = this.#options;
    const owed = this.#pendingResends;
    const what = { node, life, minute: minuteOf(clock.now()) };
    const report = owed > 0 ? fullReportFor(this.#journal, what) : usageReportFor(this.#journal, what);
    if (report === undefined) return;
    const result = await store.usage.flush(report);
    switch (result.kind) {
      case 'accepted':
        this.#journal = acknowledgeReport(this.#journal, report);
        this.#pendingResends -= owed;
        return;
      case 'seeding':
        return;
      case 'folded':
        this.#onFolded(report);
    }
  }

  /**
   * The fleet believed us dead for so long that it closed our account. What this report held may have been counted before
   * that or not; counting it again could bill it twice, so it is given up, and the next life counts from here.
   */
  #onFolded(report: UsageReport): void {
    const { log, slots } = this.#options;
    log.warn({ life: report.life, slots: report.slots.length }, 'this life was folded away; its last usage is dropped');
    slots.startIncarnation();
    this.#journal = EMPTY_JOURNAL;
    this.#incarnation = undefined;
  }
}
