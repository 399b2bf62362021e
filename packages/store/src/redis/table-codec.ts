import {
  type CertificateEntry,
  type Change,
  certificateId,
  decodeEntry,
  type Entry,
  encodeEntry,
  entryIdOf,
} from '@weir/model/data-plane';
import type { Revision, TableMeta } from '../contract.ts';

// The table as it lies in Redis: `meta`, and the entries of the stream `changes`.
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

// The private key of a certificate lies in a hash of its own, apart from the entry, so that Redis can keep it from those who need none.
// Beside it is its digest: whoever reads the two one after the other sees whether they belong together. Pure.

/** What `table` and `changes` hold of an entry. */
export function withoutPrivateKey(entry: Entry): Entry {
  if (entry.kind !== 'certificate') return entry;
  const { sealedKey: _sealedKey, ...rest } = entry;
  return rest;
}

/** What a change makes of the field of its entry in `keys`, '' = there is none; undefined: it is about no certificate. */
export function privateKeyTextFor(change: Change): string | undefined {
  if (change.kind === 'delete') return change.id.startsWith(CERTIFICATE_ID_PREFIX) ? '' : undefined;
  if (change.entry.kind !== 'certificate') return undefined;
  const { keyDigest, sealedKey } = change.entry;
  return sealedKey === undefined ? '' : `${keyDigest} ${sealedKey}`;
}

const CERTIFICATE_ID_PREFIX = certificateId('');

/** The entry whole; undefined: this is not its key, or there is none. */
export function withPrivateKey(
  certificate: CertificateEntry,
  keyText: string | null | undefined,
): CertificateEntry | undefined {
  const prefix = `${certificate.keyDigest} `;
  if (!keyText?.startsWith(prefix)) return undefined;
  return { ...certificate, sealedKey: keyText.slice(prefix.length) };
}

/** A certificate with its key, or why not: a later revision has replaced or deleted it and comes by itself, or the key is lost. */
export type JoinedCertificate = CertificateEntry | 'superseded' | 'unreadable';

export function certificatesIn(revisions: readonly Revision[]): readonly CertificateEntry[] {
  const found: CertificateEntry[] = [];
  for (const { changes } of revisions)
    for (const change of changes)
      if (change.kind === 'put' && change.entry.kind === 'certificate') found.push(change.entry);
  return found;
}

/** The revision with its certificates as they were joined. Of one that is superseded what was known before stays for that moment. */
export function withJoinedCertificates(revision: Revision, joined: ReadonlyMap<Entry, JoinedCertificate>): Revision {
  const changes: Change[] = [];
  const unreadable: string[] = [...revision.unreadable];
  for (const change of revision.changes) {
    const outcome = change.kind === 'put' ? joined.get(change.entry) : undefined;
    if (outcome === undefined) changes.push(change);
    else if (outcome === 'unreadable') unreadable.push(entryIdOf(change));
    else if (outcome !== 'superseded') changes.push({ kind: 'put', entry: outcome });
  }
  return { ...revision, changes, unreadable };
}
