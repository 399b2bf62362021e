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
  periodsOf,
  SERIES_LENGTHS,
  type SlotReport,
  type UsagePeriod,
  type UsageReport,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import { compareUsageBases, compareUsageRows } from '../comparators.ts';
import type { FlushResult, Incarnation, UsageBase, UsageSeed } from '../contract.ts';
import { GONE_NODE_TTL_MS, GONE_SERVICE_TTL_MS, goneNodeFloor } from '../limits.ts';
import { monthOfPeriod, type PeriodLength, periodAt, pointAt, positionOf } from '../usage-periods.ts';
import { addToServiceAndTenant, foldSeries, isKept, type SeriesTable, seriesFor, seriesKey } from './ledger-series.ts';

export interface Ledger {
  seeded: boolean;
  /** When `seed` restored earlier usage, in milliseconds since the Unix epoch. Not kept in the state directory. */
  restoredAt?: number;
  /**
   * The highest folded incarnation of each node; of '' for nodes that are not known. Reports of this incarnation and of lower incarnations
   * are refused.
   */
  readonly folded: Map<string, number>;
  /** The incarnations that have sent a full report since the ledger was opened, by `incarnationKey`. */
  readonly reported: Map<string, Incarnation>;
  /** Since when Services with usage do not exist, by uid, in milliseconds since the Unix epoch. */
  readonly gone: Map<string, number>;
  /** Since when nodes are gone, in milliseconds since the Unix epoch. Not kept in the state directory. */
  readonly goneNodes: Map<string, number>;
  /** The last seen cumulative counters, by incarnation and slot. */
  readonly bases: Map<string, Map<string, UsageBase>>;
  /** The usage by month and by slot (Service and tenant). */
  readonly months: Map<UsagePeriod, Map<string, UsageRow>>;
  readonly series: SeriesTable;
}

export function emptyLedger(): Ledger {
  return {
    seeded: false,
    folded: new Map(),
    reported: new Map(),
    gone: new Map(),
    goneNodes: new Map(),
    bases: new Map(),
    months: new Map(),
    series: new Map(),
  };
}

type SlotIdentity = Pick<SlotReport, 'service' | 'tenant' | 'namespace' | 'name'>;

const slotKey = (slot: Pick<SlotIdentity, 'service' | 'tenant'>): string => `${slot.service}/${slot.tenant}`;
export const incarnationKey = (node: string, life: number): string => `${life}/${node}`;

/**
 * Adds the increase of a report's counters since the last report to the months and the series, and stores the counters in
 * `ledger.bases`. `now` is in milliseconds since the Unix epoch.
 */
export function addReport(ledger: Ledger, report: UsageReport, now: number): FlushResult {
  if (!ledger.seeded) return { kind: 'seeding' };
  const folded = ledger.folded.get(report.node) ?? (isKnown(ledger, report.node) ? undefined : ledger.folded.get(''));
  if (folded !== undefined && report.life <= folded) return { kind: 'folded' };
  if (folded !== undefined) ledger.folded.set(report.node, folded);
  const bases = getOrCreate(ledger.bases, incarnationKey(report.node, report.life));
  for (const slot of report.slots) {
    const key = slotKey(slot);
    let seen = bases.get(key)?.counters ?? ZERO_COUNTERS;
    for (const point of slot.points) {
      const increase = subtractOtherServices(bases, slot, counterIncrease(seen, point.counters));
      addIncrease(ledger, slot, { minute: point.minute, increase, now });
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

interface Increase {
  /** Whole minutes since the Unix epoch. */
  readonly minute: number;
  readonly increase: Counters;
  readonly now: number;
}

function addIncrease(ledger: Ledger, slot: SlotIdentity, { minute, increase, now }: Increase): void {
  if (!hasIncrease(ZERO_COUNTERS, increase)) return;
  const rows = getOrCreate(ledger.months, periodsOf(minute).month);
  const key = slotKey(slot);
  rows.set(key, usageRowFor(slot, addCounters(rows.get(key)?.counters ?? ZERO_COUNTERS, increase)));
  for (const length of SERIES_LENGTHS) {
    const position = pointAt(length, minute);
    if (isKept(position, now)) addToServiceAndTenant(ledger.series, slot, { position, counters: increase });
  }
}

function usageRowFor({ service, tenant, namespace, name }: SlotIdentity, counters: Counters): UsageRow {
  return { service, tenant, namespace, name, counters };
}

/** Returns the usage in a period, of `tenant` or of all tenants, sorted by Service and tenant. */
export function rowsFor(ledger: Ledger, period: UsagePeriod, tenant?: string): UsageRow[] {
  const rows = [...(ledger.months.get(monthOfPeriod(period))?.values() ?? [])];
  const position = positionOf(period);
  const found =
    position === undefined
      ? rows
      : rows.flatMap((row) => {
          const counters = ledger.series.get(seriesKey(row))?.[position.length].get(position.index);
          return counters === undefined ? [] : [{ ...row, counters }];
        });
  return found.filter((row) => tenant === undefined || row.tenant === tenant).sort(compareUsageRows);
}

/** Returns the periods of one length in which a tenant has usage, ascending. */
export function periodsFor(ledger: Ledger, tenant: string, length: PeriodLength): UsagePeriod[] {
  if (length !== 'month') {
    const indexes = ledger.series.get(seriesKey({ tenant, service: '' }))?.[length].keys() ?? [];
    return Array.from(indexes, (index) => periodAt({ length, index })).sort();
  }
  const months = [...ledger.months].filter(([, rows]) => [...rows.values()].some((row) => row.tenant === tenant));
  return months.map(([month]) => month).sort();
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
    for (const row of rows) putSlot(ledger.months, month, row);
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
  const rows = [...ledger.months].flatMap(([month, slots]) => [...slots.values()].map((row) => ({ month, row })));
  const counted = new Set(rows.map(({ row }) => row.service));
  for (const uid of ledger.gone.keys()) if (existing.has(uid) || !counted.has(uid)) ledger.gone.delete(uid);
  for (const uid of counted) {
    if (existing.has(uid) || namespaceOfOtherServices(uid) !== undefined) continue;
    ledger.gone.set(uid, ledger.gone.get(uid) ?? now);
  }
  const isDue = (uid: string): boolean => now - (ledger.gone.get(uid) ?? now) >= GONE_SERVICE_TTL_MS;
  for (const { month, row } of rows) {
    if (!isDue(row.service)) continue;
    const other = { ...row, service: otherServicesUid(row.namespace), name: OTHER_SERVICES_NAME };
    ledger.months.get(month)?.delete(slotKey(row));
    const before = ledger.months.get(month)?.get(slotKey(other))?.counters ?? ZERO_COUNTERS;
    putSlot(ledger.months, month, { ...other, counters: addCounters(before, row.counters) });
    const series = ledger.series.get(seriesKey(row));
    if (series !== undefined) foldSeries(ledger.series, series, seriesFor(ledger.series, other));
  }
  for (const uid of [...ledger.gone.keys()]) if (isDue(uid)) ledger.gone.delete(uid);
}

/** See `UsageStore.foldGoneNodes`. */
export function foldNodes(ledger: Ledger, existing: ReadonlySet<string>, now: number): void {
  const { bases, folded, goneNodes } = ledger;
  const known = new Set([...folded.keys(), ...[...bases.keys()].map(nodeOfIncarnation)]);
  for (const node of goneNodes.keys()) if (existing.has(node) || !known.has(node)) goneNodes.delete(node);
  for (const node of known) {
    if (node === '' || existing.has(node)) continue;
    const since = goneNodes.get(node) ?? now;
    goneNodes.set(node, since);
    if (now - since < GONE_NODE_TTL_MS) continue;
    foldIncarnations(ledger, node, Number.POSITIVE_INFINITY);
    folded.delete(node);
    goneNodes.delete(node);
    folded.set('', Math.max(goneNodeFloor(now), folded.get('') ?? 0));
  }
}

function isKnown({ bases }: Ledger, node: string): boolean {
  return [...bases.keys()].some((key) => nodeOfIncarnation(key) === node);
}

function nodeOfIncarnation(key: string): string {
  return key.slice(key.indexOf('/') + 1);
}

/** Adds a slot to the map of the incarnation or month `key`, and returns the slot. */
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
