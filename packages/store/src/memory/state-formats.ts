// Encodes the sections of a memory store as JSON, and decodes them. Pure. A section with an invalid item is invalid, because no item must
// be lost silently.
import { decodeEntry, type Entry, encodeEntry, isTablePosition } from '@weir/model/data-plane';
import { decodeCounters, encodeCounters } from '../counters-codec.ts';
import { isSuspension } from '../suspension-codec.ts';
import { emptyLedger, incarnationKey, type Ledger, putSlot } from './ledger.ts';
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
  encode: ({ sequence, suspensions }) => ({
    sequence,
    cutoffs: [...suspensions.values()].filter(({ origin }) => origin.kind !== 'kubernetes'),
  }),
  decode({ sequence, cutoffs }) {
    const decoded = decodeList(cutoffs, (suspension) => (isSuspension(suspension) ? suspension : undefined));
    if (!isCount(sequence) || decoded === undefined) return undefined;
    const byUid = new Map(decoded.map((suspension) => [suspension.uid, suspension]));
    return { sequence, completeSince: null, suspensions: byUid, changes: new Map() };
  },
};

export const LEDGER_FORMAT: StateFormat<Ledger> = {
  kind: 'ledger',
  lossDescription: 'usage is counted from zero',
  encode: ({ seeded, folded, bases, sums }) => ({
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
    sums: [...sums].map(([period, rows]) => [
      period,
      [...rows.values()].map(({ service, tenant, namespace, name, counters }) => [
        service,
        tenant,
        namespace,
        name,
        ...encodeCounters(counters),
      ]),
    ]),
  }),
  decode({ seeded, folded, bases, sums }) {
    const ledger = emptyLedger();
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
          return putSlot(ledger.sums, period, { service, tenant, namespace, name, counters });
        });
      }) !== undefined;
    ledger.seeded = seeded === true;
    return isValid ? ledger : undefined;
  },
};

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
