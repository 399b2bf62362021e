// What earlier lives of this proxy left, in the state directory or in this process, brought to the ledger under their own
// numbers.
import { acknowledge, minuteOf, reportFor } from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { type Store, StoreError } from '@weir/store';
import { type FoundRecord, type JournalFiles, journalFileName, type LifeRecord } from './journal-files.ts';
import { wholeReportOf } from './whole-report.ts';

const REPEAT_FOR_MS = 10 * 60_000;
const REPEAT_EACH_MS = 30_000;

interface Former {
  file: string;
  record: LifeRecord;
  repeatAt: number;
}

export interface FormerLivesOptions {
  readonly node: string;
  readonly store: Store;
  readonly files: Pick<JournalFiles, 'write' | 'remove'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export class FormerLives {
  readonly #options: FormerLivesOptions;
  #lives: Former[];
  readonly #reported = new WeakSet<Former>();

  constructor(found: readonly FoundRecord[], options: FormerLivesOptions) {
    this.#options = options;
    this.#lives = found.map(({ file, record }) => ({ file, record, repeatAt: 0 }));
  }

  /** A life that this process has ended. A disk that does not take it now takes it with what is acknowledged. */
  async adopt({ file, record }: FoundRecord): Promise<void> {
    const { files, log } = this.#options;
    this.#lives.push({ file, record, repeatAt: 0 });
    try {
      await files.write(file, record);
    } catch (error) {
      log.error({ file, reason: errorMessage(error) }, 'the journal of a life that has ended cannot be written');
    }
  }

  /** One round: throws when the store is away, and goes on with the next call. A disk that fails holds up nobody else. */
  async flush(): Promise<void> {
    for (const former of [...this.#lives]) {
      try {
        await this.#flushOne(former);
      } catch (error) {
        if (error instanceof StoreError) throw error;
        if (!this.#reported.has(former)) {
          const { log } = this.#options;
          log.error({ file: former.file, reason: errorMessage(error) }, 'usage of an earlier life is stuck');
        }
        this.#reported.add(former);
      }
    }
  }

  async #flushOne(former: Former): Promise<void> {
    const life = former.record.life ?? (await this.#number(former));
    const { node, clock } = this.#options;
    const report = reportFor(former.record.journal, { node, life });
    if (report !== undefined) await this.#bring(former, report);
    else if (clock.now() - former.record.recordedAt > REPEAT_FOR_MS) await this.#forget(former);
    else if (clock.now() >= former.repeatAt) await this.#repeat(former, life);
  }

  /** The store may have lost what it had acknowledged. */
  sayAllAgain(): void {
    for (const former of this.#lives) former.repeatAt = 0;
  }

  /** A life that never had a number gets one of its own: below ours, which is taken after this. */
  async #number(former: Former): Promise<number> {
    const { store, node, files } = this.#options;
    const life = await store.heartbeats.beginLife(node, 1);
    const file = journalFileName(life, 0);
    former.record = { ...former.record, life };
    await files.write(file, former.record);
    await files.remove(former.file);
    former.file = file;
    return life;
  }

  async #bring(former: Former, report: NonNullable<ReturnType<typeof reportFor>>): Promise<void> {
    const { store, files, log } = this.#options;
    const result = await store.usage.flush(report);
    if (result.kind === 'seeding') return;
    if (result.kind === 'folded') {
      log.warn({ life: report.life, file: former.file }, 'usage of an earlier life came too late and is dropped');
      await this.#forget(former);
      return;
    }
    former.record = { ...former.record, journal: acknowledge(former.record.journal, report) };
    await files.write(former.file, former.record);
    log.info({ life: report.life, slots: report.slots.length }, 'usage of an earlier life brought to the ledger');
  }

  async #repeat(former: Former, life: number): Promise<void> {
    const { store, node, clock } = this.#options;
    const report = wholeReportOf(former.record.journal, { node, life, minute: minuteOf(former.record.recordedAt) });
    if (report === undefined) return this.#forget(former);
    const result = await store.usage.flush(report);
    if (result.kind === 'folded') await this.#forget(former);
    // A ledger that is being restored has taken nothing: come again with the next round.
    else if (result.kind === 'accepted') former.repeatAt = clock.now() + REPEAT_EACH_MS;
  }

  async #forget(former: Former): Promise<void> {
    this.#lives = this.#lives.filter((other) => other !== former);
    await this.#options.files.remove(former.file);
  }
}
