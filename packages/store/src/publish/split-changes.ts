import { type Change, encodeEntry } from '@weir/model/data-plane';
import { MAX_BYTES_PER_REVISION, MAX_CHANGES_PER_REVISION } from '../limits.ts';

/** The changes in their order, in as few revisions as the limits allow; at least one, which may be empty. */
export function splitIntoRevisions(
  changes: readonly Change[],
  maxChanges: number = MAX_CHANGES_PER_REVISION,
): readonly (readonly Change[])[] {
  const parts: Change[][] = [];
  let part: Change[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = change.kind === 'put' ? Buffer.byteLength(encodeEntry(change.entry)) : change.id.length;
    if (part.length > 0 && (part.length === maxChanges || bytes + size > MAX_BYTES_PER_REVISION)) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(change);
    bytes += size;
  }
  return [...parts, part];
}
