import type { HeadFields } from '../h1/head-fields.ts';
import type { DecodedHead } from './decoded-head.ts';

/** Receives what the peer sends on one stream. Bytes and heads are valid only until the method returns. */
export interface StreamConsumer {
  /** Called in a client with each interim response (1xx) and with the final response. */
  onResponse(stream: Http2Stream, head: DecodedHead): void;
  /** The consumer calls `consumed` when it has passed on the bytes. The peer may not send more than the window before. */
  onData(stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void;
  onTrailers(stream: Http2Stream, trailers: HeadFields): void;
  /** Called when the peer has sent everything. */
  onEnd(stream: Http2Stream): void;
  /** Called when all data that was sent has left the stream, after a `sendData` that returned another number than 0. */
  onDrain(stream: Http2Stream): void;
  /**
   * Called once, as the last event. `code` is undefined if both sides have sent everything; otherwise it is the code of the
   * reset, by either side, or of the connection error. `ERROR.refusedStream` means that the peer has not processed the
   * request (RFC 9113 §8.7). The record must not be used afterwards: another stream reuses it.
   */
  onClose(stream: Http2Stream, code: number | undefined): void;
}

/** One stream. All streams of a worker share a pool of records. */
export class Http2Stream {
  /** 0 while the record is in the pool. */
  id = 0;
  consumer: StreamConsumer | undefined;
  /** How many bytes of DATA the peer still allows. Negative if the peer has reduced the window. */
  sendWindow = 0;
  /** How many bytes of DATA the peer may still send. */
  receiveWindow = 0;
  /** The received bytes that the consumer has not passed on yet. */
  unconsumedBytes = 0;
  /** The consumed bytes that no WINDOW_UPDATE has announced yet. */
  unannouncedBytes = 0;
  /** How many bytes of DATA Content-Length still promises; -1 if the length is unknown. */
  promisedBytes = -1;
  /** The method of the request (`METHOD`). */
  method = 0;
  /** Whether the final head of the peer has arrived. */
  hasHead = false;
  hasPeerEnded = false;
  hasEnded = false;
  /** Data that waits for a window or for the transport. */
  pending: Uint8Array | undefined;
  pendingStart = 0;
  /** Whether the stream ends after the pending data. */
  endsAfterPending = false;
  /** The lines of trailers that follow the pending data. */
  pendingTrailers: Uint8Array | undefined;

  /** The number of bytes that wait in the stream. */
  get pendingBytes(): number {
    return this.pending === undefined ? 0 : this.pending.length - this.pendingStart;
  }
}

/** More records are not kept. */
const MAX_POOLED_STREAMS = 1_024;
const pool: Http2Stream[] = [];

/** Returns a record for a new stream. */
export function takeStream(id: number, sendWindow: number, receiveWindow: number): Http2Stream {
  const stream = pool.pop() ?? new Http2Stream();
  stream.id = id;
  stream.sendWindow = sendWindow;
  stream.receiveWindow = receiveWindow;
  stream.unconsumedBytes = 0;
  stream.unannouncedBytes = 0;
  stream.promisedBytes = -1;
  stream.method = 0;
  stream.hasHead = false;
  stream.hasPeerEnded = false;
  stream.hasEnded = false;
  stream.endsAfterPending = false;
  return stream;
}

export function returnStream(stream: Http2Stream): void {
  stream.id = 0;
  stream.consumer = undefined;
  stream.pending = undefined;
  stream.pendingStart = 0;
  stream.pendingTrailers = undefined;
  if (pool.length < MAX_POOLED_STREAMS) pool.push(stream);
}
