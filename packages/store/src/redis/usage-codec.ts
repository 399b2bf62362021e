import {
  type Counters,
  periodsOf,
  type SlotReport,
  type UsagePeriod,
  type UsageReport,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import type { FoldedIncarnation, UsageBase, UsageSeed } from '../contract.ts';
import { keptPeriodsFor } from '../usage-periods.ts';
import type { Keys } from './keys.ts';

// Counters as they lie in the hashes of Redis: one field each, named by a letter, as decimal text.
const COUNTER_FIELDS: Readonly<Record<string, keyof Counters>> = {
  r: 'receivedBytes',
  s: 'sentBytes',
  c: 'connections',
  q: 'requests',
};

export function encodeCounters({ receivedBytes, sentBytes, connections, requests }: Counters): number[] {
  return [receivedBytes, sentBytes, connections, requests];
}

/** Out of `usage:sum`: by Service. */
export function decodeSums(hash: unknown): Map<string, Counters> {
  return countersByPrefix(hash as Record<string, string>);
}

/** Out of `usage:bases` of the node. */
export function decodeBases(node: string, hash: unknown): UsageBase[] {
  return [...countersByPrefix(hash as Record<string, string>)].map(([slot, counters]) => {
    const [life, service = '', ...tenant] = slot.split('/');
    return { service, tenant: tenant.join('/'), node, life: Number(life), counters };
  });
}

/** Out of `usage:folded`: by node. */
export function decodeFolded(hash: unknown): FoldedIncarnation[] {
  const lives = Object.entries(hash as Record<string, string>).map(([node, life]) => ({ node, life: Number(life) }));
  return lives.sort((a, b) => (a.node < b.node ? -1 : 1));
}

function countersByPrefix(hash: Readonly<Record<string, string>>): Map<string, Counters> {
  const found = new Map<string, Counters>();
  for (const [field, text] of Object.entries(hash)) {
    const colon = field.lastIndexOf(':');
    const counter = COUNTER_FIELDS[field.slice(colon + 1)];
    if (counter === undefined) continue;
    const prefix = field.slice(0, colon);
    found.set(prefix, { ...(found.get(prefix) ?? ZERO_COUNTERS), [counter]: Number(text) });
  }
  return found;
}

// What `flush-usage.lua` and `seed-usage.lua` are called with: pure. Their headers say what stands where.
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** A report of more is sent in parts, so that no call keeps Redis busy for long. */
const MAX_POINTS_PER_CALL = 500;

/** The calls that hand over a report, in this order: the points of a slot may go on in the next one. */
export function flushCalls(keys: Keys, report: UsageReport): readonly ScriptCall[] {
  const parts: SlotReport[][] = [[]];
  let room = MAX_POINTS_PER_CALL;
  for (const slot of report.slots) {
    let from = 0;
    do {
      if (room === 0) {
        parts.push([]);
        room = MAX_POINTS_PER_CALL;
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
  const places = new ScriptKeys([open, folded, usage.bases(node), names, tenants, nodes, usage.months]);
  const expiries: string[] = [];
  const months = new Set<UsagePeriod>();
  const placeFor = (tenant: string, period: UsagePeriod, keptUntil: number | null): number => {
    const { place, isNew } = places.add(usage.sum(tenant, period));
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
      const periods = keptPeriodsFor(minute).map((each) => placeFor(tenant, each.period, each.keptUntil));
      return [...periods, ...encodeCounters(counters)];
    }),
  ]);
  return { keys: places.keys, args: [node, life, months.size, ...months, ...expiries, ...slotArgs] };
}

export function seedCall({ usage }: Keys, { months, bases, folded = [] }: UsageSeed): ScriptCall {
  const { open, names, tenants, nodes } = usage;
  const places = new ScriptKeys([open, usage.folded, names, tenants, nodes, usage.months]);
  const rows = months.flatMap(({ month, rows: each }) => each.map((row) => ({ month, row })));
  const withUsage = new Set(rows.map(({ month }) => month));
  const lives = folded.flatMap(({ node, life }) => [node, life]);
  const args: (string | number)[] = [withUsage.size, ...withUsage, folded.length, ...lives, rows.length];
  for (const { month, row } of rows) {
    const { service, tenant, namespace, name, counters } = row;
    const { place } = places.add(usage.sum(tenant, month));
    args.push(place, service, tenant, `${namespace}/${name}`, ...encodeCounters(counters));
  }
  for (const { service, tenant, node, life, counters } of bases) {
    args.push(places.add(usage.bases(node)).place, node, life, service, tenant, ...encodeCounters(counters));
  }
  return { keys: places.keys, args };
}

/** The KEYS of a call, each once, and where it stands (counted from 1, as Lua does). */
class ScriptKeys {
  readonly keys: string[];
  readonly #positions = new Map<string, number>();

  constructor(first: readonly string[]) {
    this.keys = [...first];
  }

  add(key: string): { readonly place: number; readonly isNew: boolean } {
    const known = this.#positions.get(key);
    if (known !== undefined) return { place: known, isNew: false };
    this.keys.push(key);
    this.#positions.set(key, this.keys.length);
    return { place: this.keys.length, isNew: true };
  }
}
