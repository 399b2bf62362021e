import type { Counters } from './counters.ts';

/** What one life of a proxy flushes to the ledger: cumulative values, so that repeating or losing a report is harmless. */
export interface UsageReport {
  readonly node: string;
  readonly life: number;
  readonly slots: readonly SlotReport[];
}

/** One (Service, tenant) pair. A Service that changes its tenant gets a new slot. */
export interface SlotReport {
  /** UID of the Service. */
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** By minute, ascending. The last one is the present value. */
  readonly points: readonly UsagePoint[];
}

/** The slot's cumulative value at the end of what was counted in a minute. */
export interface UsagePoint {
  /** Whole minutes since the epoch, UTC. */
  readonly minute: number;
  readonly counters: Counters;
}

/** `YYYY-MM`, `YYYY-MM-DD`, `YYYY-MM-DDTHH` or `YYYY-MM-DDTHH:MM`, UTC. */
export type UsagePeriod = string;

/** What a (Service, tenant) pair used in one period. */
export interface UsageRow {
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  readonly counters: Counters;
}
