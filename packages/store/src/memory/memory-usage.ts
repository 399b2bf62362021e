import type { UsagePeriod, UsageReport, UsageRow } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';
import type { FlushResult, Incarnation, SeriesPoint, SeriesQuery, UsageSeed, UsageStore } from '../contract.ts';
import type { PeriodLength } from '../usage-periods.ts';
import {
  addReport,
  emptyLedger,
  exportLedger,
  foldIncarnations,
  foldNodes,
  foldServices,
  type Ledger,
  periodsFor,
  rowsFor,
  seedLedger,
} from './ledger.ts';
import { expiryStepAt, pointsOf, removeExpiredPoints } from './ledger-series.ts';
import type { MemoryConnection } from './memory-connection.ts';

export interface MemoryUsageOptions {
  readonly connection: MemoryConnection;
  readonly clock: Clock;
  readonly onChange: () => void;
}

export class MemoryUsage implements UsageStore {
  content: Ledger = emptyLedger();
  readonly #connection: MemoryConnection;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #expiryStep = 0;

  constructor({ connection, clock, onChange }: MemoryUsageOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  async flush(report: UsageReport): Promise<FlushResult> {
    const result = addReport(this.#ledger(), report, this.#clock.now());
    if (result.kind === 'accepted') this.#onChange();
    return result;
  }

  async rows(period: UsagePeriod, tenant?: string): Promise<readonly UsageRow[]> {
    return rowsFor(this.#ledger(), period, tenant);
  }

  async periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]> {
    return periodsFor(this.#ledger(), tenant, length);
  }

  async series(query: SeriesQuery): Promise<readonly SeriesPoint[]> {
    return pointsOf(this.#ledger().series, query);
  }

  async exportSeed(months: readonly UsagePeriod[]): Promise<UsageSeed> {
    return exportLedger(this.#ledger(), months);
  }

  async isSeeded(): Promise<boolean> {
    return this.#ledger().seeded;
  }

  async restoredAt(): Promise<number | undefined> {
    return this.#ledger().restoredAt;
  }

  async seed(totals: UsageSeed): Promise<'seeded' | 'already'> {
    const ledger = this.#ledger();
    const result = seedLedger(ledger, totals);
    if (result === 'seeded') {
      if (totals.months.some(({ rows }) => rows.length > 0)) ledger.restoredAt = this.#clock.now();
      this.#onChange();
    }
    return result;
  }

  async fold(node: string, life: number): Promise<void> {
    foldIncarnations(this.#ledger(), node, life);
    this.#onChange();
  }

  async foldGoneServices(existing: ReadonlySet<string>, now: number): Promise<void> {
    foldServices(this.#ledger(), existing, now);
    this.#onChange();
  }

  async foldGoneNodes(existing: ReadonlySet<string>, now: number): Promise<void> {
    foldNodes(this.#ledger(), existing, now);
    this.#onChange();
  }

  async reportedInFull(): Promise<readonly Incarnation[]> {
    return [...this.#ledger().reported.values()];
  }

  #ledger(): Ledger {
    this.#connection.assertReady();
    const now = this.#clock.now();
    if (expiryStepAt(now) !== this.#expiryStep) {
      this.#expiryStep = expiryStepAt(now);
      removeExpiredPoints(this.content.series, now);
    }
    return this.content;
  }
}
