import {
  COUNTER_NAMES,
  type Counters,
  maxCounters,
  type SlotReport,
  type UsagePoint,
  type UsageReport,
  ZERO_COUNTERS,
} from './report.ts';

// What a proxy has counted and the ledger has not acknowledged. A value: `record` what the counters say, send
// `reportFor`, `acknowledge` the report that was accepted. Sending a report twice, late or never is harmless.
export interface Journal {
  /** By `slotKey`. */
  readonly slots: ReadonlyMap<string, JournalSlot>;
}

interface JournalSlot extends SlotReport {
  /** The cumulative value that the ledger is known to have. */
  readonly acknowledged: Counters;
}

/** A slot's present cumulative value of this life. */
export interface SlotReading {
  readonly service: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  readonly counters: Counters;
}

export const EMPTY_JOURNAL: Journal = { slots: new Map() };

export function slotKey(slot: Pick<SlotReading, 'service' | 'tenant'>): string {
  return `${slot.service}|${slot.tenant}`;
}

/** Notes what the counters say in `minute` (whole minutes since the epoch). A clock that steps back changes no order. */
export function recordUsage(journal: Journal, readings: readonly SlotReading[], minute: number): Journal {
  let slots: Map<string, JournalSlot> | undefined;
  for (const reading of readings) {
    const key = slotKey(reading);
    const old = journal.slots.get(key);
    const last = old?.points.at(-1)?.counters ?? old?.acknowledged ?? ZERO_COUNTERS;
    if (COUNTER_NAMES.every((name) => reading.counters[name] <= last[name])) continue;
    slots ??= new Map(journal.slots);
    slots.set(key, {
      service: reading.service,
      tenant: reading.tenant,
      namespace: reading.namespace,
      name: reading.name,
      acknowledged: old?.acknowledged ?? ZERO_COUNTERS,
      points: appendPoint(old?.points ?? [], { minute, counters: maxCounters(last, reading.counters) }),
    });
  }
  return slots === undefined ? journal : { slots };
}

function appendPoint(points: readonly UsagePoint[], point: UsagePoint): readonly UsagePoint[] {
  const last = points.at(-1);
  if (last === undefined) return [point];
  if (point.minute > last.minute) return [...thinOut(points, point.minute), point];
  return [...points.slice(0, -1), { minute: last.minute, counters: point.counters }];
}

/**
 * As exact as the ledger keeps it: by minute for two hours, by hour for eight days, by day before. An outage of a month
 * costs a slot some 340 points. Values are cumulative, so the last point of a span holds the others.
 */
function thinOut(points: readonly UsagePoint[], now: number): readonly UsagePoint[] {
  return points.filter((point, i) => {
    const next = points[i + 1];
    return next === undefined || retentionSpanOf(point.minute, now) !== retentionSpanOf(next.minute, now);
  });
}

function retentionSpanOf(minute: number, now: number): string {
  const age = now - minute;
  if (age < 120) return `minute ${minute}`;
  return age < 8 * 1440 ? `hour ${Math.floor(minute / 60)}` : `day ${Math.floor(minute / 1440)}`;
}

/** Everything not acknowledged, or undefined when there is nothing to say. */
export function usageReportFor(
  journal: Journal,
  life: { readonly node: string; readonly life: number },
): UsageReport | undefined {
  const slots: SlotReport[] = [];
  for (const { acknowledged: _known, ...slot } of journal.slots.values()) if (slot.points.length > 0) slots.push(slot);
  return slots.length === 0 ? undefined : { ...life, slots };
}

/** Without the points that the ledger took; what was recorded since the report was made stays. */
export function acknowledgeReport(journal: Journal, report: UsageReport): Journal {
  const slots = new Map(journal.slots);
  for (const sent of report.slots) {
    const key = slotKey(sent);
    const slot = slots.get(key);
    const taken = sent.points.at(-1);
    if (slot === undefined || taken === undefined) continue;
    const beyond = (point: UsagePoint): boolean =>
      COUNTER_NAMES.some((name) => point.counters[name] > taken.counters[name]);
    slots.set(key, {
      ...slot,
      acknowledged: maxCounters(slot.acknowledged, taken.counters),
      points: slot.points.filter(beyond),
    });
  }
  return { slots };
}

/** Whether nothing of the slot waits for the ledger: then its place may be used again. */
export function isSlotAcknowledged(journal: Journal, slot: Pick<SlotReading, 'service' | 'tenant'>): boolean {
  return (journal.slots.get(slotKey(slot))?.points.length ?? 0) === 0;
}

/** Without the slots of these keys; only for slots that are acknowledged and will not be counted in again. */
export function removeSlots(journal: Journal, keys: readonly string[]): Journal {
  const slots = new Map(journal.slots);
  for (const key of keys) slots.delete(key);
  return { slots };
}

// The journal as it stands in the state directory.
type DecodedSlot = Journal['slots'] extends ReadonlyMap<string, infer Slot> ? Slot : never;

/** JSON: `{"version": 1, "slots": [...]}`. */
export function encodeJournal(journal: Journal): string {
  return JSON.stringify({ version: 1, slots: [...journal.slots.values()] });
}

/** Undefined when the text is not a whole journal: then nothing of it may be used. */
export function decodeJournal(text: string): Journal | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value.version !== 1 || !Array.isArray(value.slots)) return undefined;
  const slots = new Map<string, DecodedSlot>();
  for (const slot of value.slots) {
    if (!isSlot(slot)) return undefined;
    slots.set(slotKey(slot), slot);
  }
  return { slots };
}

function isSlot(value: unknown): value is DecodedSlot {
  return (
    isRecord(value) &&
    ['service', 'tenant', 'namespace', 'name'].every((field) => typeof value[field] === 'string') &&
    isCounters(value.acknowledged) &&
    Array.isArray(value.points) &&
    value.points.every((point) => isRecord(point) && Number.isSafeInteger(point.minute) && isCounters(point.counters))
  );
}

function isCounters(value: unknown): boolean {
  return (
    isRecord(value) && COUNTER_NAMES.every((name) => Number.isSafeInteger(value[name]) && Number(value[name]) >= 0)
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
