// Once a second: what was counted goes into the journal, the journal to the disk, and what the ledger lacks to the ledger.
// Reports carry cumulative values, so that one lost or sent twice changes nothing.
import {
  acknowledge,
  EMPTY_JOURNAL,
  forget,
  isAcknowledged,
  type Journal,
  minuteOf,
  record,
  reportFor,
  type SlotReading,
  slotKey,
  type UsageReport,
} from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import type { Store } from '@weir/store';
import type { SlotBook } from '../counters/slot-book.ts';
import { FormerLives } from './former-lives.ts';
import { type JournalFiles, journalFileName } from './journal-files.ts';
import { wholeReportOf } from './whole-report.ts';

const LAST_TRY_MS = 200;
const KEPT_MS = 10 * 60_000;
/** Writing the journal may take this part of the time: after a long outage it is large, and written less often. */
const DISK_SHARE = 20;
/** Of a proxy without a state directory. */
const NO_FILES = { write: async (): Promise<void> => undefined, remove: async (): Promise<void> => undefined };

export interface UsageFlusherOptions {
  readonly node: string;
  readonly store: Store;
  readonly slots: SlotBook;
  readonly clock: Clock;
  readonly log: Logger;
  readonly startedAt: number;
  /** A number above every one that was ever used here. */
  readonly highestLife: number;
  readonly disk: { readonly files: JournalFiles; readonly former: FormerLives } | undefined;
  readonly onLife: (life: number) => void;
}

export class UsageFlusher {
  readonly #options: UsageFlusherOptions;
  readonly #former: FormerLives;
  #journal: Journal = EMPTY_JOURNAL;
  #life: number | undefined;
  #atLeast: number;
  #file: string;
  #written: Journal = EMPTY_JOURNAL;
  #hasDiskFailed = false;
  #nextWriteAt = Number.NEGATIVE_INFINITY;
  #owed = 0;
  readonly #leaving = new Map<string, number>();

  constructor(options: UsageFlusherOptions) {
    this.#options = options;
    this.#former = options.disk?.former ?? new FormerLives([], { ...options, files: NO_FILES });
    this.#atLeast = options.highestLife + 1;
    this.#file = journalFileName(undefined, options.startedAt);
  }

  get life(): number | undefined {
    return this.#life;
  }

  /** One round; throws when the store is away: nothing is lost by it. */
  async flush(): Promise<void> {
    if (this.#options.slots.isFull && this.#life !== undefined) await this.#endLife(this.#life);
    this.#note();
    if (this.#options.clock.monotonic() >= this.#nextWriteAt) await this.#write();
    await this.#former.flush();
    const life = this.#life ?? (await this.#beginLife());
    await this.#bring(life);
  }

  /** The store was away: what it had acknowledged may be lost, and everything is said once more. */
  sayAllAgain(): void {
    this.#owed += 1;
    this.#former.sayAllAgain();
  }

  /** The last rounds, until the ledger has it all or the time is over; returns why it has not. Nothing else may flush. */
  async finish(withinMs: number): Promise<string | undefined> {
    const { clock, node } = this.#options;
    const end = clock.monotonic() + withinMs;
    let reason = 'the ledger is being restored';
    do {
      try {
        await this.flush();
        if (reportFor(this.#journal, { node, life: this.#life ?? 0 }) === undefined) {
          await this.#write();
          return undefined;
        }
      } catch (error) {
        reason = errorMessage(error);
      }
      await wait(clock, LAST_TRY_MS);
    } while (clock.monotonic() < end);
    await this.#write();
    return reason;
  }

  /** Whether the ledger has this value of a slot that nobody counts in any more. */
  isSettled(reading: SlotReading): boolean {
    const known = this.#journal.slots.get(slotKey(reading))?.acknowledged;
    const { receivedBytes, sentBytes, connections, requests } = reading.counters;
    const hasNothing = receivedBytes + sentBytes + connections + requests === 0;
    return (
      hasNothing ||
      (isAcknowledged(this.#journal, reading) &&
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
    for (const key of keys) this.#leaving.set(key, now + KEPT_MS);
    const due = [...this.#leaving].filter(([, at]) => at <= now).map(([key]) => key);
    for (const key of due) this.#leaving.delete(key);
    const gone = due.filter((key) => !slots.has(key));
    if (gone.length > 0) this.#journal = forget(this.#journal, gone);
  }

  /** Under no tenant's name nothing can be billed: see `SlotBook`. */
  #note(readings: readonly SlotReading[] = this.#options.slots.readings()): void {
    const billed = readings.filter((reading) => reading.tenant !== '');
    this.#journal = record(this.#journal, billed, minuteOf(this.#options.clock.now()));
  }

  /** All that it counted belongs to it, and is brought to the ledger under its number; the next one counts what comes now. */
  async #endLife(life: number): Promise<void> {
    const { slots, clock, startedAt } = this.#options;
    this.#note(slots.startAnew());
    const ended = { file: this.#file, record: { life, journal: this.#journal, recordedAt: clock.now() } };
    this.#journal = EMPTY_JOURNAL;
    this.#written = EMPTY_JOURNAL;
    this.#life = undefined;
    this.#file = journalFileName(undefined, startedAt);
    await this.#former.adopt(ended);
  }

  async #write(): Promise<void> {
    const { disk, clock, log } = this.#options;
    const journal = this.#journal;
    if (disk === undefined || journal === this.#written) return;
    const startedAt = clock.monotonic();
    try {
      await disk.files.write(this.#file, { life: this.#life, journal, recordedAt: clock.now() });
      this.#written = journal;
      this.#hasDiskFailed = false;
    } catch (error) {
      if (!this.#hasDiskFailed) log.error({ reason: errorMessage(error) }, 'the journal of usage cannot be written');
      this.#hasDiskFailed = true;
    }
    this.#nextWriteAt = clock.monotonic() + (clock.monotonic() - startedAt) * DISK_SHARE;
  }

  async #beginLife(): Promise<number> {
    const { store, node, disk, startedAt, onLife } = this.#options;
    const life = await store.heartbeats.beginLife(node, this.#atLeast);
    const unnumbered = this.#file;
    this.#life = life;
    this.#atLeast = life + 1;
    this.#file = journalFileName(life, startedAt);
    this.#written = EMPTY_JOURNAL;
    await this.#write();
    if (this.#written === this.#journal) await disk?.files.remove(unnumbered);
    onLife(life);
    return life;
  }

  async #bring(life: number): Promise<void> {
    const { node, clock, store } = this.#options;
    const owed = this.#owed;
    const what = { node, life, minute: minuteOf(clock.now()) };
    const report = owed > 0 ? wholeReportOf(this.#journal, what) : reportFor(this.#journal, what);
    if (report === undefined) return;
    const result = await store.usage.flush(report);
    switch (result.kind) {
      case 'accepted':
        this.#journal = acknowledge(this.#journal, report);
        this.#owed -= owed;
        return;
      case 'seeding':
        return;
      case 'folded':
        this.#startAnew(report);
    }
  }

  /**
   * The fleet believed us dead for so long that it closed our account. What this report held may have been counted before
   * that or not; counting it again could bill it twice, so it is given up, and the next life counts from here.
   */
  #startAnew(report: UsageReport): void {
    const { log, slots } = this.#options;
    log.warn({ life: report.life, slots: report.slots.length }, 'this life was folded away; its last usage is dropped');
    slots.startAnew();
    this.#journal = EMPTY_JOURNAL;
    this.#life = undefined;
  }
}
