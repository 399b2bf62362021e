// The journal as it stands in the state directory.
import { COUNTER_NAMES } from './counters.ts';
import type { Journal } from './journal.ts';
import { slotKey } from './journal.ts';

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
