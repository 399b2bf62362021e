import {
  acknowledgeReport,
  type Journal,
  minuteOf,
  type UsageReport,
  unacknowledgedPoints,
  usageReportFor,
} from '@weir/model/data-plane';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import { type Store, StoreError } from '@weir/store';
import { type IncarnationFile, type IncarnationRecord, type JournalFiles, journalFileName } from './journal-files.ts';

// Reports the usage of past incarnations to the ledger under their own numbers. A past incarnation was found in the
// state directory or was ended by this process.

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

  /**
   * Adds an incarnation that this process has ended. If its file cannot be written, the file is written when the ledger
   * next acknowledges usage of the incarnation.
   */
  async add({ file, record }: IncarnationFile): Promise<void> {
    const { files, log } = this.#options;
    this.#incarnations.push({ file, record, resendAt: 0 });
    try {
      await files.write(file, record);
    } catch (error) {
      log.error(
        { file, reason: errorMessage(error) },
        'failed to write the journal of a past incarnation; retrying after the next acknowledgement',
      );
    }
  }

  /**
   * Reports the usage of each past incarnation for which a report is due. Throws if the store is unreachable, or, after all
   * incarnations have a number, if the store has refused a report. A disk error of one incarnation does not prevent the
   * reports of other incarnations.
   */
  async flush(): Promise<void> {
    let refusal: StoreError | undefined;
    for (const past of [...this.#incarnations]) {
      try {
        await this.#flushOne(past);
      } catch (error) {
        const hasNumber = past.record.incarnation !== undefined;
        if (error instanceof StoreError && (error.code !== 'REFUSED' || !hasNumber)) throw error;
        if (error instanceof StoreError) refusal = error;
        else if (!this.#reported.has(past)) {
          const { log } = this.#options;
          log.error(
            { file: past.file, reason: errorMessage(error) },
            'failed to report the usage of a past incarnation; retrying',
          );
          this.#reported.add(past);
        }
      }
    }
    if (refusal !== undefined) throw refusal;
  }

  /** Whether the ledger has accepted all usage of the past incarnations since the last call of `resendAll`. */
  get isReported(): boolean {
    return this.#incarnations.every(({ resendAt }) => resendAt > 0);
  }

  /** The number of points that the ledger has not acknowledged. */
  get unacknowledgedPoints(): number {
    return this.#incarnations.reduce((sum, { record }) => sum + unacknowledgedPoints(record.journal), 0);
  }

  async #flushOne(past: PastIncarnation): Promise<void> {
    const life = past.record.incarnation ?? (await this.#assignNumber(past));
    const { node, clock } = this.#options;
    const report = usageReportFor(past.record.journal, { node, life });
    if (report !== undefined) await this.#flushUnacknowledged(past, report);
    else if (clock.now() - past.record.recordedAt > RESEND_PERIOD_MS) await this.#forget(past);
    else if (clock.now() >= past.resendAt) await this.#resend(past, life);
  }

  /** Makes the next `flush` report acknowledged usage again, because the store may have lost it. */
  resendAll(): void {
    for (const past of this.#incarnations) past.resendAt = 0;
  }

  /**
   * Gets a number from the store for a past incarnation that has none. Called before the current incarnation gets its
   * number, so that the past incarnation has the lower number.
   */
  async #assignNumber(past: PastIncarnation): Promise<number> {
    const { store, node, files } = this.#options;
    const incarnation = await store.heartbeats.beginIncarnation(node, 1);
    const file = journalFileName(incarnation);
    past.record = { ...past.record, incarnation };
    await files.write(file, past.record);
    await files.remove(past.file);
    past.file = file;
    return incarnation;
  }

  async #flushUnacknowledged(
    past: PastIncarnation,
    report: NonNullable<ReturnType<typeof usageReportFor>>,
  ): Promise<void> {
    const { store, files, log } = this.#options;
    const result = await store.usage.flush(report);
    if (result.kind === 'seeding') return;
    if (result.kind === 'folded') {
      log.warn(
        { life: report.life, file: past.file },
        'the ledger accepts no more usage of this past incarnation, which the controller considered dead; dropping its unreported usage',
      );
      await this.#forget(past);
      return;
    }
    past.record = { ...past.record, journal: acknowledgeReport(past.record.journal, report) };
    await files.write(past.file, past.record);
    log.info({ life: report.life, slots: report.slots.length }, 'reported the usage of a past incarnation');
  }

  async #resend(past: PastIncarnation, life: number): Promise<void> {
    const { store, node, clock } = this.#options;
    const report = fullReportFor(past.record.journal, { node, life, minute: minuteOf(past.record.recordedAt) });
    if (report.slots.length === 0) return this.#forget(past);
    const result = await store.usage.flush(report);
    if (result.kind === 'folded') await this.#forget(past);
    // `seeding` means that the ledger is being restored and has recorded nothing. The next `flush` tries again.
    else if (result.kind === 'accepted') past.resendAt = clock.now() + RESEND_INTERVAL_MS;
  }

  async #forget(past: PastIncarnation): Promise<void> {
    this.#incarnations = this.#incarnations.filter((other) => other !== past);
    await this.#options.files.remove(past.file);
  }
}

/** Returns a full report of an incarnation: all usage, acknowledged or not. To be sent if the store may have lost acknowledged usage. */
export function fullReportFor(
  journal: Journal,
  { node, life, minute }: { readonly node: string; readonly life: number; readonly minute: number },
): UsageReport {
  const slots = [...journal.slots.values()].map(({ acknowledged, points, ...slot }) => ({
    ...slot,
    points: points.length > 0 ? points : [{ minute, counters: acknowledged }],
  }));
  return { node, life, slots, isFull: true };
}
