// The table as it lies in Redis: `meta`, and the entries of the stream `changes`.
import { type Change, decodeEntry, encodeEntry, entryIdOf } from '@weir/model/data-plane';
import type { Revision, TableMeta } from '../contract.ts';
import { privateKeyTextFor, withoutPrivateKey } from './certificate-keys.ts';

export const META_FIELDS = ['epoch', 'revision', 'id', 'complete', 'leader'] as const;

/** Out of the answer to HMGET of `META_FIELDS`; undefined: no epoch was opened. */
export function decodeMeta(answer: unknown): TableMeta | undefined {
  const [epoch, revision, id, complete, leader] = answer as (string | null)[];
  if (typeof epoch !== 'string' || typeof revision !== 'string' || typeof id !== 'string') return undefined;
  return {
    epoch: Number(epoch),
    revision: Number(revision),
    id,
    complete: complete === revision,
    leader: Number(leader ?? 0),
  };
}

/** Keys and then entries, each as id and text in turn, '' for what is deleted: as `publish-table.lua` takes them. */
export function encodeChanges(changes: readonly Change[]): (string | number)[] {
  const keys: string[] = [];
  const entries: string[] = [];
  for (const change of changes) {
    const id = entryIdOf(change);
    const keyText = privateKeyTextFor(change);
    if (keyText !== undefined) keys.push(id, keyText);
    entries.push(id, change.kind === 'put' ? encodeEntry(withoutPrivateKey(change.entry)) : '');
  }
  return [keys.length / 2, ...keys, ...entries];
}

/**
 * One entry of the stream: `<revision>-0`, then id, predecessor, epoch, complete and changed-at by name, then the changes. Ids of
 * entries have a slash, which no name has.
 */
export type StreamEntry = [streamId: string, fields: string[]];

export function decodeRevision([streamId, fields]: StreamEntry): Revision {
  const header = new Map<string, string>();
  let begin = 0;
  while (begin + 1 < fields.length && !fields[begin]?.includes('/')) {
    header.set(fields[begin] ?? '', fields[begin + 1] ?? '');
    begin += 2;
  }
  const rest = fields.slice(begin);
  const changes: Change[] = [];
  const unreadable: string[] = [];
  for (let index = 0; index + 1 < rest.length; index += 2) {
    const [entryId = '', text = ''] = rest.slice(index, index + 2);
    const entry = text === '' ? undefined : decodeEntry(text);
    if (entry !== undefined) changes.push({ kind: 'put', entry });
    else if (text === '') changes.push({ kind: 'delete', id: entryId });
    else unreadable.push(entryId);
  }
  const epoch = Number(header.get('epoch'));
  const position = { epoch, revision: Number.parseInt(streamId, 10), id: header.get('id') ?? '' };
  const complete = header.get('complete') === '1';
  const changedAt = Number(header.get('changed-at') || Number.NaN);
  const known = Number.isFinite(changedAt) ? { changedAt } : {};
  return { position, predecessor: header.get('predecessor') ?? '', complete, ...known, changes, unreadable };
}
