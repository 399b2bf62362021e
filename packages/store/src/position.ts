import type { TablePosition } from '@weir/model/data-plane';
import type { Revision } from './contract.ts';

/**
 * Reports whether two positions are equal in epoch, revision and id. The random id reveals a store that was rolled back and then written
 * again.
 */
export function isSamePosition(a: TablePosition | undefined, b: TablePosition | undefined): boolean {
  return a?.epoch === b?.epoch && a?.revision === b?.revision && a?.id === b?.id;
}

/**
 * Reports whether a revision directly follows the position `after`: its number is the next number, and its predecessor is the id of
 * `after`.
 */
export function isNext(
  after: TablePosition,
  { position, predecessor }: Pick<Revision, 'position' | 'predecessor'>,
): boolean {
  return position.epoch === after.epoch && position.revision === after.revision + 1 && predecessor === after.id;
}

/** Formats a position for an error message. */
export function describePosition(position: TablePosition | undefined): string {
  return position === undefined ? 'nothing' : `revision ${position.revision} of epoch ${position.epoch}`;
}
