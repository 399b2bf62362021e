import { writeFrameHeader } from './frames.ts';
import { FLAG, FRAME, FRAME_HEADER_BYTES, MAX_FRAME_BYTES, readUint32, writeUint32 } from './protocol.ts';

/** The transport of a connection. */
export interface ByteSink {
  /** Sends bytes, which are valid until the method returns. Returns how many sent bytes the kernel has not taken yet. */
  write(bytes: Uint8Array): number;
}

/** The memory that joins the frames of one event to one write. */
const BUFFER_BYTES = 65_536;
/** Where the flags and the id of the stream are in the header of a frame (RFC 9113 §4.1). */
const FLAGS_OFFSET = 4;
const STREAM_ID_OFFSET = 5;
const MAX_POOLED_BUFFERS = 16;
const pool: Uint8Array[] = [];

/** Writes the frames of one connection. The memory is taken with the first frame, and given back with `flush`. */
export class FrameOutput {
  sink: ByteSink;
  #memory: Uint8Array | undefined;
  #at = 0;
  /** Where the last HEADERS frame with a complete block starts and ends; the end is -1 once the frame is sent. */
  #headStart = -1;
  #headEnd = -1;
  /** The bytes that the transport has not taken yet, as far as the connection knows. */
  queuedBytes = 0;

  constructor(sink: ByteSink) {
    this.sink = sink;
  }

  /** Sends all frames. */
  flush(): void {
    const memory = this.#memory;
    if (memory === undefined) return;
    const end = this.#at;
    this.#memory = undefined;
    this.#at = 0;
    this.#headEnd = -1;
    this.queuedBytes = this.sink.write(memory.subarray(0, end));
    if (pool.length < MAX_POOLED_BUFFERS) pool.push(memory);
  }

  /** Writes bytes without a frame around. */
  bytes(bytes: Uint8Array): void {
    const memory = this.#reserve(bytes.length);
    memory.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Writes a frame with a payload of at most MAX_FRAME_BYTES. */
  frame(
    type: number,
    flags: number,
    streamId: number,
    payload: Uint8Array,
    start = 0,
    end: number = payload.length,
  ): void {
    const length = end - start;
    const memory = this.#reserve(FRAME_HEADER_BYTES + length);
    let to = writeFrameHeader(memory, this.#at, length, type, flags, streamId);
    if (length > 64) memory.set(payload.subarray(start, end), to);
    else for (let at = start; at < end; at += 1) memory[to + at - start] = payload[at] as number;
    to += length;
    this.#at = to;
  }

  /** Writes a frame whose payload is one number of 32 bits: RST_STREAM or WINDOW_UPDATE. */
  number(type: number, streamId: number, value: number): void {
    const memory = this.#reserve(FRAME_HEADER_BYTES + 4);
    const at = writeFrameHeader(memory, this.#at, 4, type, 0, streamId);
    writeUint32(memory, at, value);
    this.#at = at + 4;
  }

  goaway(lastStreamId: number, code: number): void {
    const memory = this.#reserve(FRAME_HEADER_BYTES + 8);
    const at = writeFrameHeader(memory, this.#at, 8, FRAME.goaway, 0, 0);
    writeUint32(memory, at, lastStreamId);
    writeUint32(memory, at + 4, code);
    this.#at = at + 8;
  }

  /** Writes the complete block of `bytes` up to `end` as HEADERS and, if it is long, CONTINUATION. */
  headers(streamId: number, bytes: Uint8Array, end: number, endsStream: boolean): void {
    const streamFlags = endsStream ? FLAG.endStream : 0;
    if (end <= MAX_FRAME_BYTES) {
      this.frame(FRAME.headers, FLAG.endHeaders | streamFlags, streamId, bytes, 0, end);
      this.#headEnd = this.#at;
      this.#headStart = this.#at - end - FRAME_HEADER_BYTES;
      return;
    }
    this.frame(FRAME.headers, streamFlags, streamId, bytes, 0, MAX_FRAME_BYTES);
    for (let at = MAX_FRAME_BYTES; at < end; at += MAX_FRAME_BYTES) {
      const pieceEnd = Math.min(end, at + MAX_FRAME_BYTES);
      this.frame(FRAME.continuation, pieceEnd === end ? FLAG.endHeaders : 0, streamId, bytes, at, pieceEnd);
    }
  }

  /**
   * Ends the stream with its HEADERS frame, if this frame is the last one and not sent yet. Returns whether it did. A
   * gRPC client takes the status of an error from a head only if the head ends the stream.
   */
  endWithHead(streamId: number): boolean {
    const memory = this.#memory;
    const start = this.#headStart;
    if (memory === undefined || this.#headEnd !== this.#at) return false;
    if (readUint32(memory, start + STREAM_ID_OFFSET) !== streamId) return false;
    memory[start + FLAGS_OFFSET] = (memory[start + FLAGS_OFFSET] as number) | FLAG.endStream;
    return true;
  }

  #reserve(length: number): Uint8Array {
    if (this.#memory !== undefined && this.#at + length > BUFFER_BYTES) this.flush();
    this.#memory ??= pool.pop() ?? new Uint8Array(BUFFER_BYTES);
    return this.#memory;
  }
}
