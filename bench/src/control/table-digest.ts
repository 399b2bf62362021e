import { createHash } from 'node:crypto';
import type { RoutingTable } from '@weir/model';
import { encodeEntry } from '@weir/model';

/** The same for two tables that say the same, in whatever order they came to it. */
export function tableDigest({ entries }: RoutingTable): string {
  const hash = createHash('sha256');
  for (const id of [...entries.keys()].sort()) {
    const entry = entries.get(id);
    if (entry !== undefined) hash.update(encodeEntry(entry)).update('\n');
  }
  return hash.digest('hex');
}
