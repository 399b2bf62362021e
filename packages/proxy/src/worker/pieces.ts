import type { PiecesOrder, TableOrder } from './messages.ts';

/** The piece of this index, as it was packed. */
export function pieceOf({ bytes, ends }: PiecesOrder, index: number): TableOrder {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset).toString('utf8', ends[index - 1] ?? 0, ends[index]);
  return JSON.parse(text) as TableOrder;
}
