// The private key of a certificate lies in a hash of its own, apart from the entry, so that Redis can keep it from those who need none.
// Beside it is its digest: whoever reads the two one after the other sees whether they belong together. Pure.
import { type CertificateEntry, type Change, certificateId, type Entry, entryIdOf } from '@weir/model/data-plane';
import type { Revision } from '../contract.ts';

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
