import {
  CODE_CLASSES,
  COUNTER_NAMES,
  type Counters,
  hasIncrease,
  maxCounters,
  type SlotReport,
  type UsagePoint,
  type UsageReport,
  ZERO_COUNTERS,
} from './report.ts';

// The usage that a proxy has counted and the ledger has not yet acknowledged, as an immutable value. `recordUsage` adds counter readings,
// `usageReportFor` builds the report to send, and `acknowledgeReport` drops what the ledger accepted. A report may be sent twice, late or
// never, because all values are cumulative.
export interface Journal {
  /** Slots by `slotKey`. */
  readonly slots: ReadonlyMap<string, JournalSlot>;
}

interface JournalSlot extends SlotReport {
  /** The cumulative counters that the ledger has acknowledged. */
  readonly acknowledged: Counters;
}

/** The cumulative counters of a slot since this proxy process started. */
export interface SlotReading {
  /** The `slotKey` of the slot. */
  readonly key: string;
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  readonly counters: Counters;
}

export const EMPTY_JOURNAL: Journal = { slots: new Map() };

/** The ledger keeps minutes for two days. A journal keeps them as long, unless it has too many slots. */
const MAX_KEPT_MINUTES = 2_880;
const MIN_KEPT_MINUTES = 120;
/** The maximum number of minutes of all slots together, as long as each slot keeps at least `MIN_KEPT_MINUTES`. */
const MAX_MINUTE_POINTS = 200_000;

/** Returns for how many minutes of an outage each of `slots` slots keeps one point per minute: two days with up to 69 slots. */
function keptMinutesFor(slots: number): number {
  return Math.min(MAX_KEPT_MINUTES, Math.max(MIN_KEPT_MINUTES, Math.floor(MAX_MINUTE_POINTS / Math.max(1, slots))));
}

/** Returns the key of a slot: `UID|tenant`. */
export function slotKey(slot: Pick<SlotReading, 'service' | 'tenant'>): string {
  return `${slot.service}|${slot.tenant}`;
}

/**
 * Returns the journal with the readings added as points of `minute` (whole minutes since the epoch). Returns the same journal if no counter
 * rose. If the clock steps back, a reading updates the newest point, so that points stay in ascending order.
 */
export function recordUsage(journal: Journal, readings: readonly SlotReading[], minute: number): Journal {
  let slots: Map<string, JournalSlot> | undefined;
  const keptMinutes = keptMinutesFor(journal.slots.size);
  for (const reading of readings) {
    const { key } = reading;
    const old = journal.slots.get(key);
    const last = old?.points.at(-1)?.counters ?? old?.acknowledged ?? ZERO_COUNTERS;
    if (!hasIncrease(last, reading.counters)) continue;
    slots ??= new Map(journal.slots);
    slots.set(key, {
      service: reading.service,
      tenant: reading.tenant,
      namespace: reading.namespace,
      name: reading.name,
      acknowledged: old?.acknowledged ?? ZERO_COUNTERS,
      points: appendPoint(old?.points ?? [], { minute, counters: maxCounters(last, reading.counters) }, keptMinutes),
    });
  }
  return slots === undefined ? journal : { slots };
}

function appendPoint(points: readonly UsagePoint[], point: UsagePoint, keptMinutes: number): readonly UsagePoint[] {
  const last = points.at(-1);
  if (last === undefined) return [point];
  if (point.minute > last.minute) return [...thinOut(points, { now: point.minute, keptMinutes }), point];
  return [...points.slice(0, -1), { minute: last.minute, counters: point.counters }];
}

/**
 * Returns the last point of each minute for points of the last `keptMinutes`, of each hour for points of the last eight days, and of each
 * day for older points. No usage is lost, because values are cumulative.
 */
function thinOut(
  points: readonly UsagePoint[],
  { now, keptMinutes }: { readonly now: number; readonly keptMinutes: number },
): readonly UsagePoint[] {
  return points.filter((point, i) => {
    const next = points[i + 1];
    if (next === undefined) return true;
    const minutes = spanOf(now - point.minute, keptMinutes);
    const isSameSpan = Math.floor(point.minute / minutes) === Math.floor(next.minute / minutes);
    return !isSameSpan || minutes !== spanOf(now - next.minute, keptMinutes);
  });
}

/** Returns how many minutes a point of this age in minutes stands for. */
function spanOf(age: number, keptMinutes: number): number {
  if (age < keptMinutes) return 1;
  return age < 8 * 1440 ? 60 : 1440;
}

/** Returns the report of all points that the ledger has not acknowledged; undefined if there are none. */
export function usageReportFor(
  journal: Journal,
  incarnation: { readonly node: string; readonly life: number },
): UsageReport | undefined {
  const slots: SlotReport[] = [];
  for (const { acknowledged: _known, ...slot } of journal.slots.values()) if (slot.points.length > 0) slots.push(slot);
  return slots.length === 0 ? undefined : { ...incarnation, slots };
}

/** Returns the number of points that the ledger has not acknowledged. */
export function unacknowledgedPoints(journal: Journal): number {
  return [...journal.slots.values()].reduce((sum, { points }) => sum + points.length, 0);
}

/**
 * Returns the journal without the points that the ledger accepted with `report`. Points that were recorded after the report was built stay.
 */
export function acknowledgeReport(journal: Journal, report: UsageReport): Journal {
  const slots = new Map(journal.slots);
  for (const sent of report.slots) {
    const key = slotKey(sent);
    const slot = slots.get(key);
    const accepted = sent.points.at(-1);
    if (slot === undefined || accepted === undefined) continue;
    const isNewer = (point: UsagePoint): boolean => hasIncrease(accepted.counters, point.counters);
    slots.set(key, {
      ...slot,
      acknowledged: maxCounters(slot.acknowledged, accepted.counters),
      points: slot.points.filter(isNewer),
    });
  }
  return { slots };
}

/** Whether the ledger has acknowledged all usage of a slot, so that its counter block may be reused. */
export function isSlotAcknowledged(journal: Journal, slot: Pick<SlotReading, 'service' | 'tenant'>): boolean {
  return (journal.slots.get(slotKey(slot))?.points.length ?? 0) === 0;
}

/** Returns the journal without the slots with these keys. Remove only slots that are acknowledged and no longer counted. */
export function removeSlots(journal: Journal, keys: readonly string[]): Journal {
  const slots = new Map(journal.slots);
  for (const key of keys) slots.delete(key);
  return { slots };
}

/** Returns the journal as JSON for the state directory: `{"version": 1, "slots": [...]}`. */
export function encodeJournal(journal: Journal): string {
  return JSON.stringify({ version: 1, slots: [...journal.slots.values()] });
}

/**
 * Decodes the JSON of `encodeJournal`, also of a version without code classes or refusals. Returns undefined if any part of the text is
 * damaged, so that no partial journal is used.
 */
export function decodeJournal(text: string): Journal | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value.version !== 1 || !Array.isArray(value.slots)) return undefined;
  const slots = new Map<string, JournalSlot>();
  for (const slot of value.slots) {
    if (!isSlot(slot)) return undefined;
    slots.set(slotKey(slot), slot);
  }
  return { slots };
}

function isSlot(value: unknown): value is JournalSlot {
  return (
    isRecord(value) &&
    ['service', 'tenant', 'namespace', 'name'].every((field) => typeof value[field] === 'string') &&
    isCounters(value.acknowledged) &&
    Array.isArray(value.points) &&
    value.points.every((point) => isRecord(point) && Number.isSafeInteger(point.minute) && isCounters(point.counters))
  );
}

function isCounters(value: unknown): boolean {
  if (!isRecord(value) || !areCounts(value, COUNTER_NAMES)) return false;
  const { requestsByCodeClass: classes, refused } = value;
  if (classes !== undefined && !(isRecord(classes) && areCounts(classes, CODE_CLASSES))) return false;
  return refused === undefined || (isRecord(refused) && areCounts(refused, Object.keys(refused)));
}

function areCounts(value: Record<string, unknown>, names: readonly string[]): boolean {
  return names.every((name) => Number.isSafeInteger(value[name]) && Number(value[name]) >= 0);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
