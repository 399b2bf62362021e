// Composes what one event handler sends in the `output` of this thread, so that a head and the data that arrived with the
// head leave in one write.
import { writeChunkHeader } from './h1/chunked-body.ts';
import { FIELD, type HeadFields } from './h1/head-fields.ts';
import { output, takeOutput } from './worker-memory.ts';

/** The stream to which the output is sent. */
export interface Sink {
  send(bytes: Uint8Array): void;
}

/** Longer data are not copied into the output. */
const MAX_COPIED_BYTES = 65_536;
/** The line before the data of a chunk, and the line end after the data. */
const CHUNK_FRAMING_BYTES = 18;
const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const NO_BYTES: Uint8Array = new Uint8Array(0);
const LINE_END: Uint8Array = Uint8Array.of(CR, LF);

/** Sends the output, if there is any. */
export function flush(sink: Sink): void {
  if (output.at <= 0) return;
  sink.send(takeOutput());
}

export function writeData(sink: Sink, isChunked: boolean, bytes: Uint8Array, start: number, end: number): void {
  const length = end - start;
  reserve(sink, Math.min(length, MAX_COPIED_BYTES) + CHUNK_FRAMING_BYTES);
  if (isChunked) output.at = writeChunkHeader(output.memory, output.at, length);
  if (length <= MAX_COPIED_BYTES) output.range(bytes, start, end);
  else {
    flush(sink);
    sink.send(bytes.subarray(start, end));
  }
  if (isChunked) writeLineEnd();
}

/** Writes the end of a chunked body with its trailer fields. */
export function writeChunkedEnd(sink: Sink, trailers: HeadFields | undefined): void {
  reserve(sink, MAX_COPIED_BYTES);
  output.byte(ZERO);
  writeLineEnd();
  if (trailers !== undefined) {
    const { bytes, count, ids, nameStart, valueEnd } = trailers;
    for (let index = 0; index < count; index += 1) {
      if (!isTrailerSent(ids[index] as number)) continue;
      output.range(bytes, nameStart[index] as number, valueEnd[index] as number);
      writeLineEnd();
    }
  }
  writeLineEnd();
}

/** Returns the lines of a trailer section, each with its line end; no bytes if there are none. */
export function trailerLinesOf(trailers: HeadFields | undefined): Uint8Array {
  if (trailers === undefined) return NO_BYTES;
  const { bytes, count, ids, nameStart, valueEnd } = trailers;
  const lines: Uint8Array[] = [];
  for (let index = 0; index < count; index += 1) {
    if (isTrailerSent(ids[index] as number)) lines.push(bytes.subarray(nameStart[index], valueEnd[index]), LINE_END);
  }
  return Buffer.concat(lines);
}

/**
 * Whether a field with this id (`FIELD`) may be in a trailer section. RFC 9110 §6.5.1: trailers have no fields for framing,
 * routing or authentication. Recipients that merge trailers into the head would take such a field for one that the proxy
 * has checked or written.
 */
function isTrailerSent(id: number): boolean {
  return id === FIELD.other;
}

/** Makes space for a head, whatever its length. */
export function reserveHead(sink: Sink): void {
  reserve(sink, MAX_COPIED_BYTES);
}

function reserve(sink: Sink, length: number): void {
  if (output.at + length > output.memory.length) flush(sink);
}

function writeLineEnd(): void {
  output.byte(CR);
  output.byte(LF);
}
