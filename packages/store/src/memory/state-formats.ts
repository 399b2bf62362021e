// Encodes the sections of a memory store as JSON, and decodes them. Pure. A section with an invalid item is invalid, because no item must
// be lost silently.
import {
  type Counters,
  decodeEntry,
  type Entry,
  encodeEntry,
  isTablePosition,
  type RefusalCounts,
  SERIES_LENGTHS,
  type UsagePeriod,
  type UsageRow,
} from '@weir/model/data-plane';
import type { SuspensionAuditRecord } from '../contract.ts';
import { decodeCounters, encodeCounters, isAmount } from '../counters-codec.ts';
import { isRelease, isSuspension } from '../suspension-codec.ts';
import { positionOf } from '../usage-periods.ts';
import { emptyLedger, incarnationKey, type Ledger, putSlot } from './ledger.ts';
import { addToServiceAndTenant, type Series, type SeriesTable, seriesFor } from './ledger-series.ts';
import type { SuspensionContent } from './memory-suspensions.ts';
import type { TableContent } from './memory-table.ts';
import type { StateFormat } from './state-directory.ts';

/** The table without its revisions. After a restart, a follower that is not at the last revision reads the complete table. */
export const TABLE_FORMAT: StateFormat<TableContent> = {
  kind: 'table',
  lossDescription: 'ports are allocated from scratch',
  encode: ({ leader, position, complete, entries }) => ({
    leader,
    position: position ?? null,
    complete,
    entries: [...entries.values()].map(encodeEntry),
  }),
  decode({ leader, position, complete, entries }) {
    if (!isCount(leader) || typeof complete !== 'boolean') return undefined;
    if (position !== null && !isTablePosition(position)) return undefined;
    const decoded = decodeList(entries, (text) => (typeof text === 'string' ? decodeEntry(text) : undefined));
    if (decoded === undefined) return undefined;
    const byId = new Map(decoded.map((entry: Entry) => [entry.id, entry]));
    return { leader, position: position ?? undefined, complete, entries: byId, revisions: [] };
  },
};

/** The last incarnation number of each node. */
export const INCARNATIONS_FORMAT: StateFormat<Map<string, number>> = {
  kind: 'lives',
  lossDescription: 'the current time is used for the next incarnation numbers of the proxies',
  encode: (lives) => ({ lives: [...lives] }),
  decode({ lives }) {
    const pairs = decodeList(lives, decodeIncarnation);
    return pairs && new Map(pairs);
  },
};

/**
 * Suspensions that were made in the store or come from files. A suspension from a file is written too, so that the suspension stays in
 * force if the file has a mistake after a restart. The controller restores Suspensions of the API server.
 */
export const SUSPENSIONS_FORMAT: StateFormat<SuspensionContent> = {
  kind: 'cutoffs',
  lossDescription: 'suspensions that were made by hand, or whose object cannot be read, are lifted',
  encode: ({ sequence, suspensions, audit }) => ({
    sequence,
    audit,
    cutoffs: [...suspensions.values()].filter(({ origin }) => origin.kind !== 'kubernetes'),
  }),
  decode({ sequence, cutoffs, audit = [] }) {
    const records = decodeList(audit, (record) => (isAuditRecord(record) ? record : undefined));
    const decoded = decodeList(cutoffs, (suspension) => (isSuspension(suspension) ? suspension : undefined));
    if (!isCount(sequence) || decoded === undefined || records === undefined) return undefined;
    const byUid = new Map(decoded.map((suspension) => [suspension.uid, suspension]));
    return { sequence, completeSince: null, suspensions: byUid, changes: new Map(), audit: records };
  },
};

function isAuditRecord(value: unknown): value is SuspensionAuditRecord {
  const { id, at, suspension, release } = isRecord(value) ? value : {};
  return isText(id) && isCount(at) && isSuspension(suspension) && (release === null || isRelease(release));
}

export const LEDGER_FORMAT: StateFormat<Ledger> = {
  kind: 'ledger',
  lossDescription: 'usage is counted from zero',
  encode: ({ seeded, folded, bases, months, series }) => ({
    seeded,
    folded: [...folded],
    bases: [...bases.values()].flatMap((slots) =>
      [...slots.values()].map(({ node, life, service, tenant, counters }) => [
        node,
        life,
        service,
        tenant,
        ...encodeCounters(counters),
      ]),
    ),
    // Earlier versions also have minutes, hours and days here.
    sums: [...months].map(([month, rows]) => [
      month,
      [...rows.values()].map(({ service, tenant, namespace, name, counters }) => [
        service,
        tenant,
        namespace,
        name,
        ...encodeCounters(counters),
      ]),
    ]),
    // Refusals are in separate lists, so that a version of Weir that does not know refusals can still read the ledger.
    refused: {
      bases: refusalsIn(bases),
      sums: refusalsIn(months),
    },
    series: [...series.values()].flatMap(encodeSeries),
  }),
  decode({ seeded, folded, bases, sums, refused, series = [] }) {
    const ledger = emptyLedger();
    const rowsByPeriod: Ledger['months'] = new Map();
    const isValid =
      typeof seeded === 'boolean' &&
      decodeList(folded, (value) => {
        const pair = decodeIncarnation(value);
        return pair && ledger.folded.set(...pair);
      }) !== undefined &&
      decodeList(bases, (value) => {
        const [node, life, service, tenant, ...numbers] = arrayOf(value);
        const counters = decodeCounters(numbers);
        if (!isText(node) || !isCount(life) || !isText(service) || !isText(tenant) || !counters) return undefined;
        return putSlot(ledger.bases, incarnationKey(node, life), { service, tenant, node, life, counters });
      }) !== undefined &&
      decodeList(sums, (value) => {
        const [period, rows] = arrayOf(value);
        if (!isText(period) || !PERIOD_PATTERN.test(period)) return undefined;
        return decodeList(rows, (row) => {
          const [service, tenant, namespace, name, ...numbers] = arrayOf(row);
          const counters = decodeCounters(numbers);
          if (!isText(service) || !isText(tenant) || !isText(namespace) || !isText(name) || !counters) return undefined;
          return putSlot(rowsByPeriod, period, { service, tenant, namespace, name, counters });
        });
      }) !== undefined &&
      (refused === undefined || addRefusals({ bases: ledger.bases, sums: rowsByPeriod }, refused)) &&
      decodeList(series, (value) => decodeSeries(ledger.series, value)) !== undefined;
    for (const [period, rows] of rowsByPeriod) addPeriod(ledger, period, rows);
    ledger.seeded = seeded === true;
    return isValid ? ledger : undefined;
  },
};

/** Adds the rows of a month, or of a minute, hour or day that an earlier version has written. */
function addPeriod(ledger: Ledger, period: UsagePeriod, rows: Map<string, UsageRow>): void {
  const position = positionOf(period);
  if (position === undefined) ledger.months.set(period, rows);
  else for (const row of rows.values()) addToServiceAndTenant(ledger.series, row, { position, counters: row.counters });
}

/** Returns a list of points for each length: `[tenant, service, length, [index, refusals or null, …counters], …]`. */
function encodeSeries(series: Series): unknown[] {
  const { tenant, service } = series;
  return SERIES_LENGTHS.map((length) => [
    tenant,
    service,
    length,
    ...Array.from(series[length], ([index, counters]) => [
      index,
      counters.refused ?? null,
      ...encodeCounters(counters),
    ]),
  ]);
}

function decodeSeries(table: SeriesTable, value: unknown): unknown {
  const [tenant, service, length, ...points] = arrayOf(value);
  const known = SERIES_LENGTHS.find((each) => each === length);
  if (!isText(tenant) || !isText(service) || known === undefined) return undefined;
  const target = seriesFor(table, { tenant, service });
  return decodeList(points, (point) => {
    const [index, refused, ...numbers] = arrayOf(point);
    const counters = decodeCounters(numbers);
    if (!isCount(index) || counters === undefined) return undefined;
    if (refused === null) return target[known].set(index, counters);
    if (!isRecord(refused) || !Object.values(refused).every(isAmount)) return undefined;
    return target[known].set(index, { ...counters, refused: refused as RefusalCounts });
  });
}

/** The rows of the ledger, or its bases, by a key of the map and a key of the inner map. */
type Slots = Map<string, Map<string, { readonly counters: Counters }>>;

/** Returns the refusals of each row or base that has any, as `[key, key of the inner map, counts by reason]`. */
function refusalsIn(parents: Slots): [string, string, RefusalCounts][] {
  return [...parents].flatMap(([parent, slots]) =>
    [...slots].flatMap(([slot, { counters }]): [string, string, RefusalCounts][] =>
      counters.refused === undefined ? [] : [[parent, slot, counters.refused]],
    ),
  );
}

/** Adds encoded refusals to bases and rows. Returns whether all items are valid. */
function addRefusals(
  ledger: { readonly bases: Ledger['bases']; readonly sums: Ledger['months'] },
  refused: unknown,
): boolean {
  const { bases, sums } = isRecord(refused) ? refused : {};
  const addTo = (parents: Slots, items: unknown): boolean =>
    decodeList(items, (item) => {
      const [parent, slot, counts] = arrayOf(item);
      if (!isText(parent) || !isText(slot) || !isRecord(counts)) return undefined;
      const known = parents.get(parent)?.get(slot);
      if (known === undefined || !Object.values(counts).every(isAmount)) return undefined;
      const counters = { ...known.counters, refused: counts as RefusalCounts };
      return parents.get(parent)?.set(slot, { ...known, counters });
    }) !== undefined;
  return addTo(ledger.bases as Slots, bases) && addTo(ledger.sums as Slots, sums);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const PERIOD_PATTERN = /^\d{4}-\d\d(-\d\d(T\d\d(:\d\d)?)?)?$/;

/** Decodes a list item by item. Returns undefined if the value is not a list or one item is invalid. */
function decodeList<T>(value: unknown, decode: (item: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items = value.map(decode);
  return items.includes(undefined) ? undefined : (items as T[]);
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function decodeIncarnation(value: unknown): [string, number] | undefined {
  const [node, life] = arrayOf(value);
  return isText(node) && isCount(life) ? [node, life] : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
