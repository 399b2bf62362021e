// Encodes and decodes the table in Redis: the hash `meta`, the stream `changes` and the private keys. Pure.
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

export const META_FIELDS = ['epoch', 'revision', 'id', 'complete', 'leader'] as const;

/** Decodes the reply to HMGET of `META_FIELDS`. Returns undefined if no epoch was opened. */
export function decodeMeta(reply: unknown): TableMeta | undefined {
  const [epoch, revision, id, complete, leader] = reply as (string | null)[];
  if (typeof epoch !== 'string' || typeof revision !== 'string' || typeof id !== 'string') return undefined;
  return {
    epoch: Number(epoch),
    revision: Number(revision),
    id,
    complete: complete === revision,
    leader: Number(leader ?? 0),
  };
}

/**
 * Encodes changes as the last arguments of `publish-table.lua`: the number of private keys, the private keys, and the entries. Each private
 * key and each entry is a pair of entry id and text. The text '' deletes the private key or the entry.
 */
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
 * One entry of the stream. Its id is `<revision>-0`. Its fields are the header (id, predecessor, epoch, complete, changed-at), followed by
 * pairs of entry id and encoded entry. An entry id contains a slash, the name of a header field does not.
 */
export type StreamEntry = [streamId: string, fields: string[]];

/** Decodes an entry of the stream. The result's `unreadable` lists the ids of routing table entries that have an unknown version. */
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

// Private keys are stored in a separate hash, so that the ACL of Redis can deny users access to the hash. Each key is stored with its
// digest, so that a reader detects a key that does not belong to the certificate.

/** Returns the entry as `table` and `changes` store it: a certificate without its private key. */
export function withoutPrivateKey(entry: Entry): Entry {
  if (entry.kind !== 'certificate') return entry;
  const { sealedKey: _sealedKey, ...rest } = entry;
  return rest;
}

/** Returns the text that a change stores in the hash `keys`: '' deletes the field. Returns undefined if the entry is not a certificate. */
export function privateKeyTextFor(change: Change): string | undefined {
  if (change.kind === 'delete') return change.id.startsWith(CERTIFICATE_ID_PREFIX) ? '' : undefined;
  if (change.entry.kind !== 'certificate') return undefined;
  const { keyDigest, sealedKey } = change.entry;
  return sealedKey === undefined ? '' : `${keyDigest} ${sealedKey}`;
}

const CERTIFICATE_ID_PREFIX = certificateId('');

/** Adds a private key to a certificate. Returns undefined if the key is missing or belongs to another certificate. */
export function withPrivateKey(
  certificate: CertificateEntry,
  keyText: string | null | undefined,
): CertificateEntry | undefined {
  const prefix = `${certificate.keyDigest} `;
  if (!keyText?.startsWith(prefix)) return undefined;
  return { ...certificate, sealedKey: keyText.slice(prefix.length) };
}

/**
 * The result of adding a private key to a certificate. `superseded`: a later revision replaces or deletes the certificate, and the follower
 * will read this revision. `unreadable`: the private key is lost or must not be read.
 */
export type JoinedCertificate = CertificateEntry | 'superseded' | 'unreadable';

/** Returns the certificates that the revisions add or replace, in order. */
export function certificatesIn(revisions: readonly Revision[]): readonly CertificateEntry[] {
  const found: CertificateEntry[] = [];
  for (const { changes } of revisions)
    for (const change of changes)
      if (change.kind === 'put' && change.entry.kind === 'certificate') found.push(change.entry);
  return found;
}

/**
 * Replaces each certificate of a revision by its result in `joined`. Drops superseded certificates: a follower keeps the old certificate
 * until a later revision replaces or deletes it.
 */
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
