import { minuteOf, type Period, type UsageReport, type UsageRow } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { FlushResult, UsageSeed, UsageStore } from '../contract.ts';
import type { PeriodLength } from '../retention.ts';
import type { Gate } from './gate.ts';
import { copy, emptyLedger, flush, fold, type Ledger, periodsWith, prune, rowsOf, seed } from './ledger.ts';

export interface MemoryUsageOptions {
  readonly gate: Gate;
  readonly clock: Clock;
  readonly onChange: () => void;
}

export class MemoryUsage implements UsageStore {
  content: Ledger = emptyLedger();
  readonly #gate: Gate;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #prunedAt = 0;

  constructor({ gate, clock, onChange }: MemoryUsageOptions) {
    this.#gate = gate;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async flush(report: UsageReport): Promise<FlushResult> {
    const result = flush(this.#ledger(), report, this.#clock.now());
    if (result.kind === 'accepted') this.#onChange();
    return result;
  }

  async rows(period: Period, tenant?: string): Promise<readonly UsageRow[]> {
    return rowsOf(this.#ledger(), period, tenant);
  }

  async periods(tenant: string, length: PeriodLength): Promise<readonly Period[]> {
    return periodsWith(this.#ledger(), tenant, length);
  }

  async copy(months: readonly Period[]): Promise<UsageSeed> {
    return copy(this.#ledger(), months);
  }

  async isSeeded(): Promise<boolean> {
    return this.#ledger().seeded;
  }

  async seed(totals: UsageSeed): Promise<'seeded' | 'already'> {
    const result = seed(this.#ledger(), totals);
    if (result === 'seeded') this.#onChange();
    return result;
  }

  async fold(node: string, life: number): Promise<void> {
    fold(this.#ledger(), node, life);
    this.#onChange();
  }

  #ledger(): Ledger {
    this.#gate.pass();
    const now = this.#clock.now();
    if (minuteOf(now) !== this.#prunedAt) {
      this.#prunedAt = minuteOf(now);
      prune(this.content, now);
    }
    return this.content;
  }
}
