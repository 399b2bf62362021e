import type { PackedTableCommand, TableCommand } from './messages.ts';

/** The piece of this index, as it was packed. */
export function unpackBatch({ bytes, ends }: PackedTableCommand, index: number): TableCommand {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset).toString('utf8', ends[index - 1] ?? 0, ends[index]);
  return JSON.parse(text) as TableCommand;
}
