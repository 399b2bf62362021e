import { createHash } from 'node:crypto';
import type { RoutingTable } from '@weir/model';
import { encodeEntry } from '@weir/model';

/** Returns the digest of a table. Tables with equal entries have equal digests, even if the order of the entries differs. */
export function tableDigest({ entries }: RoutingTable): string {
  const hash = createHash('sha256');
  for (const id of [...entries.keys()].sort()) {
    const entry = entries.get(id);
    if (entry !== undefined) hash.update(encodeEntry(entry)).update('\n');
  }
  return hash.digest('hex');
}
