// Memory that all HTTP connections of this thread share. The edit and the output are used only until the event handler
// returns, so no connection needs memory of its own for them.
import { randomFillSync } from 'node:crypto';
import type { WriteMemory } from '../transport/tcp-transport.ts';
import { ByteWriter } from './passes/byte-writer.ts';
import { HeadEdit } from './passes/head-edit.ts';

/** Large enough for the largest head after the passes, and for the data that one write joins to a head. */
const OUTPUT_BYTES = 131_072;

export const output: ByteWriter = new ByteWriter(new Uint8Array(OUTPUT_BYTES));
let writeMemory: WriteMemory | undefined;

/** Makes `memory` the memory of `output`, so that the transport sends the output without a copy. */
export function composeIn(memory: WriteMemory): void {
  const { length } = memory.bytes;
  if (length < OUTPUT_BYTES) throw new RangeError(`invalid memory of ${length} bytes: expected >= ${OUTPUT_BYTES}`);
  writeMemory = memory;
  output.restart(memory.bytes, 0);
}

/** Clears the output, and returns what it contained. Valid until something is written to `output`. */
export function takeOutput(): Uint8Array {
  const { at } = output;
  output.at = 0;
  return writeMemory?.view(at) ?? output.memory.subarray(0, at);
}
export const edit: HeadEdit = new HeadEdit();

const RANDOM_BYTES = 4_096;
const random = new Uint8Array(RANDOM_BYTES);
let randomUsed = RANDOM_BYTES;

/** Fills `memory` with random bytes. Fetches them in blocks, because each call of the generator costs a microsecond. */
export function fillRandom(memory: Uint8Array): void {
  if (randomUsed + memory.length > RANDOM_BYTES) {
    randomFillSync(random);
    randomUsed = 0;
  }
  for (let at = 0; at < memory.length; at += 1) memory[at] = random[randomUsed + at] as number;
  randomUsed += memory.length;
}

let dateSecond = -1;
let date: Uint8Array = new Uint8Array(0);

/** Returns the time as Date wants it (RFC 9110 §5.6.7). `now` is in milliseconds since the epoch. */
export function dateText(now: number): Uint8Array {
  const second = Math.floor(now / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new TextEncoder().encode(new Date(second * 1_000).toUTCString());
  }
  return date;
}
