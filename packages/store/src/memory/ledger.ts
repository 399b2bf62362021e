// The usage ledger of the memory store. `lua/flush-usage.lua` implements the same arithmetic in Redis.
import {
  addCounters,
  type Counters,
  counterIncrease,
  hasIncrease,
  maxCounters,
  namespaceOfOtherServices,
  OTHER_SERVICES_NAME,
  otherServicesUid,
  type SlotReport,
  type UsagePeriod,
  type UsageReport,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import { compareUsageBases, compareUsageRows } from '../comparators.ts';
import type { FlushResult, Incarnation, UsageBase, UsageSeed } from '../contract.ts';
import { GONE_SERVICE_TTL_MS } from '../limits.ts';
import { type KeptPeriod, keptPeriodsFor, keptUntil, lengthOf, type PeriodLength } from '../usage-periods.ts';

export interface Ledger {
  seeded: boolean;
  /** When `seed` restored earlier usage, in milliseconds since the Unix epoch. Not kept in the state directory. */
  restoredAt?: number;
  /** The highest folded incarnation of each node. Reports of this incarnation and of lower incarnations are refused. */
  readonly folded: Map<string, number>;
  /** The incarnations that have sent a full report since the ledger was opened, by `incarnationKey`. */
  readonly reported: Map<string, Incarnation>;
  /** Since when Services with usage do not exist, by uid, in milliseconds since the Unix epoch. */
  readonly gone: Map<string, number>;
  /** The last seen cumulative counters, by incarnation and slot. */
  readonly bases: Map<string, Map<string, UsageBase>>;
  /** The usage by period and by slot (Service and tenant). */
  readonly sums: Map<UsagePeriod, Map<string, UsageRow>>;
}

export function emptyLedger(): Ledger {
  return { seeded: false, folded: new Map(), reported: new Map(), gone: new Map(), bases: new Map(), sums: new Map() };
}

type SlotIdentity = Pick<SlotReport, 'service' | 'tenant' | 'namespace' | 'name'>;

const slotKey = (slot: Pick<SlotIdentity, 'service' | 'tenant'>): string => `${slot.service}/${slot.tenant}`;
export const incarnationKey = (node: string, life: number): string => `${life}/${node}`;

/**
 * Adds the increase of a report's counters since the last report to `ledger.sums`, and stores the counters in `ledger.bases`. `now` is in
 * milliseconds since the Unix epoch.
 */
export function addReport(ledger: Ledger, report: UsageReport, now: number): FlushResult {
  if (!ledger.seeded) return { kind: 'seeding' };
  if (report.life <= (ledger.folded.get(report.node) ?? Number.NEGATIVE_INFINITY)) return { kind: 'folded' };
  const bases = getOrCreate(ledger.bases, incarnationKey(report.node, report.life));
  // Most points of a report belong to the same minute.
  let minute = Number.NaN;
  let periods: readonly KeptPeriod[] = [];
  for (const slot of report.slots) {
    const key = slotKey(slot);
    let seen = bases.get(key)?.counters ?? ZERO_COUNTERS;
    for (const point of slot.points) {
      const increase = subtractOtherServices(bases, slot, counterIncrease(seen, point.counters));
      if (point.minute !== minute) periods = keptPeriodsFor(point.minute);
      minute = point.minute;
      addToSums(ledger, slot, { key, periods, increase, now });
      seen = maxCounters(seen, point.counters);
    }
    const { service, tenant } = slot;
    bases.set(key, { service, tenant, node: report.node, life: report.life, counters: seen });
  }
  const { node, life, isFull = false } = report;
  if (isFull) ledger.reported.set(incarnationKey(node, life), { node, life });
  return { kind: 'accepted' };
}

/** Returns the increase without the part that the base of other Services covers, and uses up this part of the base. */
function subtractOtherServices(bases: Map<string, UsageBase>, slot: SlotIdentity, increase: Counters): Counters {
  const key = slotKey({ service: otherServicesUid(slot.namespace), tenant: slot.tenant });
  const other = bases.get(key);
  if (other === undefined) return increase;
  bases.set(key, { ...other, counters: counterIncrease(increase, other.counters) });
  return counterIncrease(other.counters, increase);
}

interface PeriodAddition {
  /** The `slotKey` of the slot. */
  readonly key: string;
  readonly periods: readonly KeptPeriod[];
  readonly increase: Counters;
  readonly now: number;
}

function addToSums(ledger: Ledger, slot: SlotIdentity, { key, periods, increase, now }: PeriodAddition): void {
  if (!hasIncrease(ZERO_COUNTERS, increase)) return;
  for (const { period, keptUntil: end } of periods) {
    if (end !== null && end <= now) continue;
    const rows = getOrCreate(ledger.sums, period);
    rows.set(key, usageRowFor(slot, addCounters(rows.get(key)?.counters ?? ZERO_COUNTERS, increase)));
  }
}

function usageRowFor({ service, tenant, namespace, name }: SlotIdentity, counters: Counters): UsageRow {
  return { service, tenant, namespace, name, counters };
}

/** Returns the usage in a period, of `tenant` or of all tenants, sorted by Service and tenant. */
export function rowsFor(ledger: Ledger, period: UsagePeriod, tenant?: string): UsageRow[] {
  const rows = [...(ledger.sums.get(period)?.values() ?? [])];
  return rows.filter((row) => tenant === undefined || row.tenant === tenant).sort(compareUsageRows);
}

/** Returns the periods of one length in which a tenant has usage, ascending. */
export function periodsFor(ledger: Ledger, tenant: string, length: PeriodLength): UsagePeriod[] {
  const periods = [...ledger.sums].filter(
    ([period, rows]) => lengthOf(period) === length && [...rows.values()].some((row) => row.tenant === tenant),
  );
  return periods.map(([period]) => period).sort();
}

/** Returns the rows of the given months, all bases and all folded incarnations. */
export function exportLedger(ledger: Ledger, months: readonly UsagePeriod[]): UsageSeed {
  return {
    months: months.map((month) => ({ month, rows: rowsFor(ledger, month) })),
    bases: [...ledger.bases.values()].flatMap((slots) => [...slots.values()]).sort(compareUsageBases),
    folded: [...ledger.folded].map(([node, life]) => ({ node, life })).sort((a, b) => (a.node < b.node ? -1 : 1)),
  };
}

/**
 * Fills the ledger with `months`, `bases` and `folded`, and opens the ledger. Leaves out bases of folded incarnations. Returns `already`
 * and does nothing if the ledger is open.
 */
export function seedLedger(ledger: Ledger, { months, bases, folded = [] }: UsageSeed): 'seeded' | 'already' {
  if (ledger.seeded) return 'already';
  for (const { node, life } of folded) foldIncarnations(ledger, node, life);
  for (const { month, rows } of months) {
    for (const row of rows) putSlot(ledger.sums, month, row);
  }
  for (const base of bases) {
    if (base.life <= (ledger.folded.get(base.node) ?? Number.NEGATIVE_INFINITY)) continue;
    putSlot(ledger.bases, incarnationKey(base.node, base.life), base);
  }
  ledger.seeded = true;
  return 'seeded';
}

/**
 * Makes the ledger refuse reports of incarnation `life` and lower incarnations of the node, and deletes the bases of these incarnations.
 */
export function foldIncarnations(ledger: Ledger, node: string, life: number): void {
  ledger.folded.set(node, Math.max(life, ledger.folded.get(node) ?? life));
  for (const [key, slots] of ledger.bases) {
    const base = slots.values().next().value;
    if (base !== undefined && base.node === node && base.life <= life) ledger.bases.delete(key);
  }
  for (const [key, reported] of ledger.reported) {
    if (reported.node === node && reported.life <= life) ledger.reported.delete(key);
  }
}

/** See `UsageStore.foldGoneServices`. */
export function foldServices(ledger: Ledger, existing: ReadonlySet<string>, now: number): void {
  const months = [...ledger.sums].filter(([period]) => lengthOf(period) === 'month');
  const counted = new Set(months.flatMap(([, rows]) => [...rows.values()].map(({ service }) => service)));
  for (const uid of ledger.gone.keys()) if (existing.has(uid) || !counted.has(uid)) ledger.gone.delete(uid);
  for (const uid of counted) {
    if (existing.has(uid) || namespaceOfOtherServices(uid) !== undefined) continue;
    ledger.gone.set(uid, ledger.gone.get(uid) ?? now);
  }
  const isDue = (uid: string): boolean => now - (ledger.gone.get(uid) ?? now) >= GONE_SERVICE_TTL_MS;
  for (const [period, rows] of ledger.sums) {
    // Rows per hour and minute expire by themselves.
    if (lengthOf(period) !== 'month' && lengthOf(period) !== 'day') continue;
    for (const [key, row] of [...rows]) {
      if (!isDue(row.service)) continue;
      rows.delete(key);
      const other = { ...row, service: otherServicesUid(row.namespace), name: OTHER_SERVICES_NAME };
      const before = rows.get(slotKey(other))?.counters ?? ZERO_COUNTERS;
      putSlot(ledger.sums, period, { ...other, counters: addCounters(before, row.counters) });
    }
  }
  for (const uid of [...ledger.gone.keys()]) if (isDue(uid)) ledger.gone.delete(uid);
}

/** Deletes the usage of periods whose retention has ended at `now` (milliseconds since the Unix epoch). */
export function removeExpiredPeriods(ledger: Ledger, now: number): void {
  for (const period of ledger.sums.keys()) {
    const end = keptUntil(period);
    if (end !== null && end <= now) ledger.sums.delete(period);
  }
}

/** Adds a slot to the map of the incarnation or period `key`, and returns the slot. */
export function putSlot<V extends Pick<SlotIdentity, 'service' | 'tenant'>>(
  parents: Map<string, Map<string, V>>,
  key: string,
  slot: V,
): V {
  getOrCreate(parents, key).set(slotKey(slot), slot);
  return slot;
}

function getOrCreate<V>(parents: Map<string, Map<string, V>>, key: string): Map<string, V> {
  let child = parents.get(key);
  if (child === undefined) {
    child = new Map();
    parents.set(key, child);
  }
  return child;
}
