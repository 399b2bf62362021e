// What `flush-usage.lua` and `seed-usage.lua` are called with: pure. Their headers say what stands where.
import { type Period, periodsOf, type SlotReport, type UsageReport } from '@weir/model/data-plane';
import type { UsageSeed } from '../contract.ts';
import { keptPeriodsOf } from '../retention.ts';
import type { Keys } from './keys.ts';
import { encodeCounters } from './usage-codec.ts';

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** A report of more is sent in parts, so that no call keeps Redis busy for long. */
const POINTS_PER_CALL = 500;

/** The calls that hand over a report, in this order: the points of a slot may go on in the next one. */
export function flushCalls(keys: Keys, report: UsageReport): readonly ScriptCall[] {
  const parts: SlotReport[][] = [[]];
  let room = POINTS_PER_CALL;
  for (const slot of report.slots) {
    let from = 0;
    do {
      if (room === 0) {
        parts.push([]);
        room = POINTS_PER_CALL;
      }
      const points = slot.points.slice(from, from + room);
      parts.at(-1)?.push({ ...slot, points });
      from += points.length;
      room -= points.length;
    } while (from < slot.points.length);
  }
  return parts.map((slots) => flushCall(keys, { ...report, slots }));
}

function flushCall({ usage }: Keys, { node, life, slots }: UsageReport): ScriptCall {
  const { open, folded, names, tenants, nodes } = usage;
  const places = new KeyPlaces([open, folded, usage.bases(node), names, tenants, nodes, usage.months]);
  const expiries: string[] = [];
  const months = new Set<Period>();
  const placeFor = (tenant: string, period: Period, keptUntil: number | null): number => {
    const { place, isNew } = places.of(usage.sum(tenant, period));
    if (isNew) expiries.push(keptUntil === null ? '' : String(Math.ceil(keptUntil / 1000)));
    return place;
  };
  const slotArgs = slots.flatMap(({ service, tenant, namespace, name, points }) => [
    service,
    tenant,
    `${namespace}/${name}`,
    points.length,
    ...points.flatMap(({ minute, counters }) => {
      months.add(periodsOf(minute).month);
      const periods = keptPeriodsOf(minute).map((each) => placeFor(tenant, each.period, each.keptUntil));
      return [...periods, ...encodeCounters(counters)];
    }),
  ]);
  return { keys: places.keys, args: [node, life, months.size, ...months, ...expiries, ...slotArgs] };
}

export function seedCall({ usage }: Keys, { months, bases, folded = [] }: UsageSeed): ScriptCall {
  const { open, names, tenants, nodes } = usage;
  const places = new KeyPlaces([open, usage.folded, names, tenants, nodes, usage.months]);
  const rows = months.flatMap(({ month, rows: each }) => each.map((row) => ({ month, row })));
  const withUsage = new Set(rows.map(({ month }) => month));
  const lives = folded.flatMap(({ node, life }) => [node, life]);
  const args: (string | number)[] = [withUsage.size, ...withUsage, folded.length, ...lives, rows.length];
  for (const { month, row } of rows) {
    const { service, tenant, namespace, name, counters } = row;
    const { place } = places.of(usage.sum(tenant, month));
    args.push(place, service, tenant, `${namespace}/${name}`, ...encodeCounters(counters));
  }
  for (const { service, tenant, node, life, counters } of bases) {
    args.push(places.of(usage.bases(node)).place, node, life, service, tenant, ...encodeCounters(counters));
  }
  return { keys: places.keys, args };
}

/** The KEYS of a call, each once, and where it stands (counted from 1, as Lua does). */
class KeyPlaces {
  readonly keys: string[];
  readonly #places = new Map<string, number>();

  constructor(first: readonly string[]) {
    this.keys = [...first];
  }

  of(key: string): { readonly place: number; readonly isNew: boolean } {
    const known = this.#places.get(key);
    if (known !== undefined) return { place: known, isNew: false };
    this.keys.push(key);
    this.#places.set(key, this.keys.length);
    return { place: this.keys.length, isNew: true };
  }
}
