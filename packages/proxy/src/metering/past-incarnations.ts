import { acknowledgeReport, type Journal, minuteOf, type UsageReport, usageReportFor } from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { type Store, StoreError } from '@weir/store';
import { type IncarnationFile, type IncarnationRecord, type JournalFiles, journalFileName } from './journal-files.ts';

// What earlier lives of this proxy left, in the state directory or in this process, brought to the ledger under their own
// numbers.
const RESEND_PERIOD_MS = 10 * 60_000;
const RESEND_INTERVAL_MS = 30_000;

interface PastIncarnation {
  file: string;
  record: IncarnationRecord;
  resendAt: number;
}

export interface PastIncarnationsOptions {
  readonly node: string;
  readonly store: Store;
  readonly files: Pick<JournalFiles, 'write' | 'remove'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export class PastIncarnations {
  readonly #options: PastIncarnationsOptions;
  #incarnations: PastIncarnation[];
  readonly #reported = new WeakSet<PastIncarnation>();

  constructor(found: readonly IncarnationFile[], options: PastIncarnationsOptions) {
    this.#options = options;
    this.#incarnations = found.map(({ file, record }) => ({ file, record, resendAt: 0 }));
  }

  /** A life that this process has ended. A disk that does not take it now takes it with what is acknowledged. */
  async add({ file, record }: IncarnationFile): Promise<void> {
    const { files, log } = this.#options;
    this.#incarnations.push({ file, record, resendAt: 0 });
    try {
      await files.write(file, record);
    } catch (error) {
      log.error({ file, reason: errorMessage(error) }, 'the journal of a life that has ended cannot be written');
    }
  }

  /** One round: throws when the store is away, and goes on with the next call. A disk that fails holds up nobody else. */
  async flush(): Promise<void> {
    for (const former of [...this.#incarnations]) {
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

  async #flushOne(former: PastIncarnation): Promise<void> {
    const life = former.record.incarnation ?? (await this.#assignNumber(former));
    const { node, clock } = this.#options;
    const report = usageReportFor(former.record.journal, { node, life });
    if (report !== undefined) await this.#flushUnacknowledged(former, report);
    else if (clock.now() - former.record.recordedAt > RESEND_PERIOD_MS) await this.#forget(former);
    else if (clock.now() >= former.resendAt) await this.#resend(former, life);
  }

  /** The store may have lost what it had acknowledged. */
  resendAll(): void {
    for (const former of this.#incarnations) former.resendAt = 0;
  }

  /** A life that never had a number gets one of its own: below ours, which is taken after this. */
  async #assignNumber(former: PastIncarnation): Promise<number> {
    const { store, node, files } = this.#options;
    const incarnation = await store.heartbeats.beginIncarnation(node, 1);
    const file = journalFileName(incarnation, 0);
    former.record = { ...former.record, incarnation };
    await files.write(file, former.record);
    await files.remove(former.file);
    former.file = file;
    return incarnation;
  }

  async #flushUnacknowledged(
    former: PastIncarnation,
    report: NonNullable<ReturnType<typeof usageReportFor>>,
  ): Promise<void> {
    const { store, files, log } = this.#options;
    const result = await store.usage.flush(report);
    if (result.kind === 'seeding') return;
    if (result.kind === 'folded') {
      log.warn({ life: report.life, file: former.file }, 'usage of an earlier life came too late and is dropped');
      await this.#forget(former);
      return;
    }
    former.record = { ...former.record, journal: acknowledgeReport(former.record.journal, report) };
    await files.write(former.file, former.record);
    log.info({ life: report.life, slots: report.slots.length }, 'usage of an earlier life brought to the ledger');
  }

  async #resend(former: PastIncarnation, life: number): Promise<void> {
    const { store, node, clock } = this.#options;
    const report = fullReportFor(former.record.journal, { node, life, minute: minuteOf(former.record.recordedAt) });
    if (report === undefined) return this.#forget(former);
    const result = await store.usage.flush(report);
    if (result.kind === 'folded') await this.#forget(former);
    // A ledger that is being restored has taken nothing: come again with the next round.
    else if (result.kind === 'accepted') former.resendAt = clock.now() + RESEND_INTERVAL_MS;
  }

  async #forget(former: PastIncarnation): Promise<void> {
    this.#incarnations = this.#incarnations.filter((other) => other !== former);
    await this.#options.files.remove(former.file);
  }
}

/**
 * Everything that a life has counted, also what the ledger has acknowledged: said again after the store was lost for a
 * moment, because a failover may have lost what it had acknowledged. Undefined when there is nothing.
 */
export function fullReportFor(
  journal: Journal,
  { node, life, minute }: { readonly node: string; readonly life: number; readonly minute: number },
): UsageReport | undefined {
  const slots = [...journal.slots.values()].map(({ acknowledged, points, ...slot }) => ({
    ...slot,
    points: points.length > 0 ? points : [{ minute, counters: acknowledged }],
  }));
  return slots.length === 0 ? undefined : { node, life, slots };
}
