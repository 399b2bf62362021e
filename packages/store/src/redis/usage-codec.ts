import {
  type Counters,
  countersFrom,
  counterValues,
  periodsOf,
  SERIES_LENGTHS,
  type SlotReport,
  type UsagePeriod,
  type UsageReport,
} from '@weir/model/data-plane';
import type { Incarnation, UsageBase, UsageSeed } from '../contract.ts';
import { blockKeptUntil, blockOf, pointAt } from '../usage-periods.ts';
import type { Keys } from './keys.ts';

/**
 * The suffixes of the hash fields in Redis that contain the counters, in the order of `counterValues`. The value of a field is decimal
 * text. An absent field has the value 0.
 */
const COUNTER_FIELDS = ['r', 's', 'c', 'q', 'q2', 'q3', 'q4', 'q5', 'qn'] as const;
const INDEX_BY_FIELD: ReadonlyMap<string, number> = new Map(COUNTER_FIELDS.map((field, index) => [field, index]));

/** The prefix of the reason in the suffix of a hash field that contains refusals, such as `x.rate-limit`. */
const REFUSAL_FIELD_PREFIX = 'x.';

/** Returns the suffixes of the counters that may be in the given fields of a hash: all counters, and the reasons of refusals found. */
export function counterSuffixesIn(fields: Iterable<string>): readonly string[] {
  const suffixes = new Set<string>(COUNTER_FIELDS);
  for (const field of fields) {
    const suffix = field.slice(field.lastIndexOf(':') + 1);
    if (suffix.startsWith(REFUSAL_FIELD_PREFIX)) suffixes.add(suffix);
  }
  return [...suffixes];
}

/** Returns the uids of the Services in the given fields of a hash `usage:sum`. */
export function servicesIn(fields: Iterable<string>): ReadonlySet<string> {
  return new Set(Array.from(fields, (field) => field.slice(0, field.lastIndexOf(':'))));
}

/** Decodes the hash `usage:sum` of one tenant and month. Returns the counters by Service uid. */
export function decodeSums(hash: unknown): Map<string, Counters> {
  return countersByPrefix(hash as Record<string, string>);
}

/** Decodes the hash `usage:bases` of a node. */
export function decodeBases(node: string, hash: unknown): UsageBase[] {
  return [...countersByPrefix(hash as Record<string, string>)].map(([slot, counters]) => {
    const [life, service = '', ...tenant] = slot.split('/');
    return { service, tenant: tenant.join('/'), node, life: Number(life), counters };
  });
}

/** Decodes the hash `usage:folded`, sorted by node. */
export function decodeFolded(hash: unknown): Incarnation[] {
  const folded = Object.entries(hash as Record<string, string>).map(([node, life]) => ({ node, life: Number(life) }));
  return folded.sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** Decodes a member of the set `usage:reported`. */
export function decodeReported(member: string): Incarnation {
  const slash = member.indexOf('/');
  return { node: member.slice(slash + 1), life: Number(member.slice(0, slash)) };
}

function countersByPrefix(hash: Readonly<Record<string, string>>): Map<string, Counters> {
  const rows = new Map<string, { readonly values: number[]; readonly refused: [string, number][] }>();
  for (const [field, text] of Object.entries(hash)) {
    const colon = field.lastIndexOf(':');
    const suffix = field.slice(colon + 1);
    const index = INDEX_BY_FIELD.get(suffix);
    const isRefusal = suffix.startsWith(REFUSAL_FIELD_PREFIX);
    if (index === undefined && !isRefusal) continue;
    const prefix = field.slice(0, colon);
    const row = rows.get(prefix) ?? { values: COUNTER_FIELDS.map(() => 0), refused: [] };
    if (index !== undefined) row.values[index] = Number(text);
    else if (Number(text) > 0) row.refused.push([suffix.slice(REFUSAL_FIELD_PREFIX.length), Number(text)]);
    rows.set(prefix, row);
  }
  return new Map(
    [...rows].map(([prefix, { values, refused }]) => [
      prefix,
      countersFrom(values, refused.length > 0 ? Object.fromEntries(refused) : undefined),
    ]),
  );
}

/** Returns the counters as arguments of a script: the values of `counterValues`, the number of reasons, and each reason with its count. */
function counterArgs(counters: Counters): (string | number)[] {
  const refused = Object.entries(counters.refused ?? {});
  return [...counterValues(counters), refused.length, ...refused.flat()];
}

/** The KEYS and ARGV of one call of `flush-usage.lua` or `seed-usage.lua`. The headers of these scripts describe KEYS and ARGV. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * The maximum number of points in one call of `flush-usage.lua`; a larger report is split. Bounds the time for which one call blocks Redis.
 */
const MAX_POINTS_PER_CALL = 500;

/** Returns the calls of `flush-usage.lua` that add a report, in order. The points of one slot may be split over several calls. */
export function flushCalls(keys: Keys, report: UsageReport): readonly ScriptCall[] {
  const parts: SlotReport[][] = [[]];
  let remaining = MAX_POINTS_PER_CALL;
  for (const slot of report.slots) {
    let from = 0;
    do {
      if (remaining === 0) {
        parts.push([]);
        remaining = MAX_POINTS_PER_CALL;
      }
      const points = slot.points.slice(from, from + remaining);
      parts.at(-1)?.push({ ...slot, points });
      from += points.length;
      remaining -= points.length;
    } while (from < slot.points.length);
  }
  const { isFull = false } = report;
  return parts.map((slots, index) =>
    flushCall(keys, { ...report, slots, isFull: isFull && index === parts.length - 1 }),
  );
}

function flushCall({ usage }: Keys, { node, life, slots, isFull }: UsageReport): ScriptCall {
  const { open, folded, names, tenants, nodes, months: monthsKey, reported, reasons } = usage;
  const first = [open, folded, usage.bases(node), names, tenants, nodes, monthsKey, reported, reasons];
  const scriptKeys = new ScriptKeys(first);
  const expiries: string[] = [];
  const months = new Set<UsagePeriod>();
  const keyIndexFor = (key: string, keptUntil: number | null): number => {
    const { index, isNew } = scriptKeys.add(key);
    if (isNew) expiries.push(keptUntil === null ? '' : expiryArg(keptUntil));
    return index;
  };
  const slotArgs = slots.flatMap(({ service, tenant, namespace, name, points }) => [
    service,
    tenant,
    `${namespace}/${name}`,
    points.length,
    ...points.flatMap(({ minute, counters }) => {
      const { month } = periodsOf(minute);
      months.add(month);
      const blockIndexes = [service, ''].flatMap((owner) =>
        SERIES_LENGTHS.map((length) => {
          const block = blockOf(pointAt(length, minute));
          return keyIndexFor(usage.series({ tenant, service: owner }, length, block), blockKeptUntil(length, block));
        }),
      );
      return [minute, keyIndexFor(usage.sum(tenant, month), null), ...blockIndexes, ...counterArgs(counters)];
    }),
  ]);
  const args = [node, life, isFull ? 1 : 0, months.size, ...months, ...expiries, ...slotArgs];
  return { keys: scriptKeys.keys, args };
}

/** Returns the end of a retention (milliseconds since the Unix epoch) as an argument of a script, in seconds. */
export function expiryArg(keptUntil: number): string {
  return String(Math.ceil(keptUntil / 1000));
}

/** Returns the call of `seed-usage.lua` that seeds the ledger. */
export function seedCall({ usage }: Keys, { months, bases, folded = [] }: UsageSeed): ScriptCall {
  const { open, names, tenants, nodes } = usage;
  const scriptKeys = new ScriptKeys([open, usage.folded, names, tenants, nodes, usage.months]);
  const rows = months.flatMap(({ month, rows: monthRows }) => monthRows.map((row) => ({ month, row })));
  const usedMonths = new Set(rows.map(({ month }) => month));
  const foldedArgs = folded.flatMap(({ node, life }) => [node, life]);
  const args: (string | number)[] = [usedMonths.size, ...usedMonths, folded.length, ...foldedArgs, rows.length];
  for (const { month, row } of rows) {
    const { service, tenant, namespace, name, counters } = row;
    const { index } = scriptKeys.add(usage.sum(tenant, month));
    args.push(index, service, tenant, `${namespace}/${name}`, ...counterArgs(counters));
  }
  for (const { service, tenant, node, life, counters } of bases) {
    args.push(scriptKeys.add(usage.bases(node)).index, node, life, service, tenant, ...counterArgs(counters));
  }
  return { keys: scriptKeys.keys, args };
}

/** Collects the distinct KEYS of a script call. An index counts from 1, as in Lua. */
class ScriptKeys {
  readonly keys: string[];
  readonly #indexes = new Map<string, number>();

  constructor(first: readonly string[]) {
    this.keys = [...first];
  }

  add(key: string): { readonly index: number; readonly isNew: boolean } {
    const known = this.#indexes.get(key);
    if (known !== undefined) return { index: known, isNew: false };
    this.keys.push(key);
    this.#indexes.set(key, this.keys.length);
    return { index: this.keys.length, isNew: true };
  }
}
