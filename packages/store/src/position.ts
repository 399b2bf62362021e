import type { TablePosition } from '@weir/model/data-plane';
import type { Revision } from './contract.ts';

/** Whether both say the same table: all three parts count, so that a store that was rolled back or refilled is noticed. */
export function isSamePosition(a: TablePosition | undefined, b: TablePosition | undefined): boolean {
  return a?.epoch === b?.epoch && a?.revision === b?.revision && a?.id === b?.id;
}

/** Whether `revision` was published right on top of `after`, by whoever published that. */
export function isNext(
  after: TablePosition,
  { position, predecessor }: Pick<Revision, 'position' | 'predecessor'>,
): boolean {
  return position.epoch === after.epoch && position.revision === after.revision + 1 && predecessor === after.id;
}

export function describePosition(position: TablePosition | undefined): string {
  return position === undefined ? 'nothing' : `revision ${position.revision} of epoch ${position.epoch}`;
}
