// The arithmetic of the ledger, as data and functions on it. `lua/flush-usage.lua` is the same in Redis.
import {
  add,
  COUNTER_NAMES,
  type Counters,
  growth,
  newest,
  type Period,
  type SlotReport,
  type UsageReport,
  type UsageRow,
  ZERO,
} from '@weir/model/data-plane';
import type { FlushResult, UsageBase, UsageSeed } from '../contract.ts';
import { keptPeriodsOf, keptUntil, lengthOf, type PeriodLength } from '../retention.ts';
import { byLifeAndSlot, byServiceAndTenant } from '../usage-order.ts';

export interface Ledger {
  seeded: boolean;
  /** By node: this life and all lower ones are refused. */
  readonly folded: Map<string, number>;
  /** By life, then slot: the last seen cumulative value. */
  readonly bases: Map<string, Map<string, UsageBase>>;
  /** By period, then slot. */
  readonly sums: Map<Period, Map<string, UsageRow>>;
}

export function emptyLedger(): Ledger {
  return { seeded: false, folded: new Map(), bases: new Map(), sums: new Map() };
}

type SlotNames = Pick<SlotReport, 'service' | 'tenant' | 'namespace' | 'name'>;

const slotKey = (slot: Pick<SlotNames, 'service' | 'tenant'>): string => `${slot.service}/${slot.tenant}`;
export const lifeKey = (node: string, life: number): string => `${life}/${node}`;

/** Adds what the report has beyond the bases; `now` in milliseconds since the epoch. */
export function flush(ledger: Ledger, report: UsageReport, now: number): FlushResult {
  if (!ledger.seeded) return { kind: 'seeding' };
  if (report.life <= (ledger.folded.get(report.node) ?? Number.NEGATIVE_INFINITY)) return { kind: 'folded' };
  const life = childOf(ledger.bases, lifeKey(report.node, report.life));
  for (const slot of report.slots) {
    const key = slotKey(slot);
    let seen = life.get(key)?.counters ?? ZERO;
    for (const point of slot.points) {
      addToPeriods(ledger, slot, { minute: point.minute, more: growth(seen, point.counters), now });
      seen = newest(seen, point.counters);
    }
    const { service, tenant } = slot;
    life.set(key, { service, tenant, node: report.node, life: report.life, counters: seen });
  }
  return { kind: 'accepted' };
}

interface Addition {
  readonly minute: number;
  readonly more: Counters;
  readonly now: number;
}

function addToPeriods(ledger: Ledger, slot: SlotNames, { minute, more, now }: Addition): void {
  if (COUNTER_NAMES.every((name) => more[name] === 0)) return;
  for (const { period, keptUntil: end } of keptPeriodsOf(minute)) {
    if (end !== null && end <= now) continue;
    const rows = childOf(ledger.sums, period);
    const key = slotKey(slot);
    rows.set(key, rowOf(slot, add(rows.get(key)?.counters ?? ZERO, more)));
  }
}

function rowOf({ service, tenant, namespace, name }: SlotNames, counters: Counters): UsageRow {
  return { service, tenant, namespace, name, counters };
}

export function rowsOf(ledger: Ledger, period: Period, tenant?: string): UsageRow[] {
  const rows = [...(ledger.sums.get(period)?.values() ?? [])];
  return rows.filter((row) => tenant === undefined || row.tenant === tenant).sort(byServiceAndTenant);
}

export function periodsWith(ledger: Ledger, tenant: string, length: PeriodLength): Period[] {
  const periods = [...ledger.sums].filter(
    ([period, rows]) => lengthOf(period) === length && [...rows.values()].some((row) => row.tenant === tenant),
  );
  return periods.map(([period]) => period).sort();
}

export function copy(ledger: Ledger, months: readonly Period[]): UsageSeed {
  return {
    months: months.map((month) => ({ month, rows: rowsOf(ledger, month) })),
    bases: [...ledger.bases.values()].flatMap((slots) => [...slots.values()]).sort(byLifeAndSlot),
    folded: [...ledger.folded].map(([node, life]) => ({ node, life })).sort((a, b) => (a.node < b.node ? -1 : 1)),
  };
}

export function seed(ledger: Ledger, { months, bases, folded = [] }: UsageSeed): 'seeded' | 'already' {
  if (ledger.seeded) return 'already';
  for (const { node, life } of folded) fold(ledger, node, life);
  for (const { month, rows } of months) {
    for (const row of rows) placeSlot(ledger.sums, month, row);
  }
  for (const base of bases) {
    if (base.life <= (ledger.folded.get(base.node) ?? Number.NEGATIVE_INFINITY)) continue;
    placeSlot(ledger.bases, lifeKey(base.node, base.life), base);
  }
  ledger.seeded = true;
  return 'seeded';
}

export function fold(ledger: Ledger, node: string, life: number): void {
  ledger.folded.set(node, Math.max(life, ledger.folded.get(node) ?? life));
  for (const [key, slots] of ledger.bases) {
    const base = slots.values().next().value;
    if (base !== undefined && base.node === node && base.life <= life) ledger.bases.delete(key);
  }
}

/** Forgets the periods whose time is over at `now` (milliseconds since the epoch). */
export function prune(ledger: Ledger, now: number): void {
  for (const period of ledger.sums.keys()) {
    const end = keptUntil(period);
    if (end !== null && end <= now) ledger.sums.delete(period);
  }
}

/** Puts a slot in its place below a life or a period. */
export function placeSlot<V extends Pick<SlotNames, 'service' | 'tenant'>>(
  parents: Map<string, Map<string, V>>,
  key: string,
  slot: V,
): V {
  childOf(parents, key).set(slotKey(slot), slot);
  return slot;
}

function childOf<V>(parents: Map<string, Map<string, V>>, key: string): Map<string, V> {
  let child = parents.get(key);
  if (child === undefined) {
    child = new Map();
    parents.set(key, child);
  }
  return child;
}
