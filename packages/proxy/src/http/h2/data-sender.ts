import { strict as assert } from 'node:assert';
import type { ReceiverOwner } from './data-receiver.ts';
import type { FrameOutput } from './frame-output.ts';
import { ERROR, FLAG, FRAME, INITIAL_WINDOW_BYTES, MAX_FRAME_BYTES, MAX_WINDOW_BYTES } from './protocol.ts';
import type { Http2Stream } from './stream.ts';
import type { StreamTable } from './stream-table.ts';

/** What a sender needs of its connection. */
export interface SenderOwner extends ReceiverOwner {
  /** Called when END_STREAM was sent. */
  onEndSent(stream: Http2Stream): void;
  writeTrailers(stream: Http2Stream, lines: Uint8Array): void;
  onDataSent(bytes: number): void;
}

/**
 * Sends DATA within the windows of the peer (RFC 9113 §5.2) and as fast as the transport takes the bytes. Data that must
 * wait are copied to their stream. The streams that wait take turns, one frame each.
 */
export class DataSender {
  /** The window of the connection. */
  #window = INITIAL_WINDOW_BYTES;
  readonly #owner: SenderOwner;
  readonly #streams: StreamTable;
  readonly #output: FrameOutput;
  readonly #waiting: Http2Stream[] = [];
  #nextTurn = 0;

  constructor(owner: SenderOwner, streams: StreamTable, output: FrameOutput) {
    this.#owner = owner;
    this.#streams = streams;
    this.#output = output;
  }

  /** Throws if the stream has ended: a caller must not send after `onClose`, or after its own end of the stream. */
  assertOpen(stream: Http2Stream): void {
    const hasEnded = stream.hasEnded || stream.endsAfterPending || stream.pendingTrailers !== undefined;
    assert(this.#streams.has(stream) && !hasEnded, 'the stream has ended');
  }

  /** Sends data, and ends the stream if `endsStream`. Returns the number of bytes that wait in the stream. */
  send(stream: Http2Stream, bytes: Uint8Array, start: number, end: number, endsStream: boolean): number {
    this.assertOpen(stream);
    if (stream.pending !== undefined) {
      appendPending(stream, bytes, start, end);
      stream.endsAfterPending = endsStream;
      return stream.pendingEnd - stream.pendingStart;
    }
    let at = start;
    while (at < end && this.#canSend(stream)) at = this.#sendFrame(stream, bytes, at, end, endsStream);
    if (at < end) {
      // `slice` of a Buffer would not copy.
      stream.pending = new Uint8Array(bytes.subarray(at, end));
      stream.pendingStart = 0;
      stream.pendingEnd = end - at;
      stream.endsAfterPending = endsStream;
      this.#waiting.push(stream);
      return end - at;
    }
    if (!endsStream) return 0;
    // RFC 9113 §6.9.1: DATA without content needs no window.
    if (start === end && !this.#output.endWithHead(stream.id))
      this.#output.frame(FRAME.data, FLAG.endStream, stream.id, bytes, 0, 0);
    this.#owner.onEndSent(stream);
    return 0;
  }

  /** Sends trailers after all data. The lines are HTTP/1.1 field lines. */
  sendTrailers(stream: Http2Stream, lines: Uint8Array): void {
    this.assertOpen(stream);
    if (stream.pending === undefined) this.#owner.writeTrailers(stream, lines);
    else stream.pendingTrailers = new Uint8Array(lines);
  }

  /** Takes a WINDOW_UPDATE of the connection (`id` is 0) or of a stream. */
  onWindowUpdate(id: number, bytes: number): void {
    if (id === 0) {
      this.#window += bytes;
      const error = errorOf(bytes, this.#window);
      if (error !== ERROR.none) this.#owner.fail(error);
      else this.resume();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      // RFC 9113 §5.1: WINDOW_UPDATE on an idle stream is a connection error. On a closed stream, it may be late.
      if (this.#streams.isIdle(id)) this.#owner.fail(ERROR.protocol);
      return;
    }
    stream.sendWindow += bytes;
    const error = errorOf(bytes, stream.sendWindow);
    if (error !== ERROR.none) this.#owner.failStream(id, error);
    else this.resume();
  }

  /** Adds `bytes`, which may be negative, to the windows of all streams after SETTINGS (RFC 9113 §6.9.2). */
  widenStreams(bytes: number): void {
    if (bytes === 0) return;
    let isTooLarge = false;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += bytes;
      if (stream.sendWindow > MAX_WINDOW_BYTES) isTooLarge = true;
    }
    if (isTooLarge) this.#owner.fail(ERROR.flowControl);
    else this.resume();
  }

  /** Sends what waits. Called when a window or the transport has become free. */
  resume(): void {
    const waiting = this.#waiting;
    let passed = 0;
    while (passed < waiting.length && this.#window > 0 && this.#output.queuedBytes === 0) {
      if (this.#nextTurn >= waiting.length) this.#nextTurn = 0;
      const stream = waiting[this.#nextTurn] as Http2Stream;
      if (stream.sendWindow <= 0) {
        passed += 1;
        this.#nextTurn += 1;
        continue;
      }
      passed = 0;
      const bytes = stream.pending as Uint8Array;
      const endsStream = stream.endsAfterPending && stream.pendingTrailers === undefined;
      stream.pendingStart = this.#sendFrame(stream, bytes, stream.pendingStart, stream.pendingEnd, endsStream);
      if (stream.pendingStart < stream.pendingEnd) this.#nextTurn += 1;
      else {
        waiting.splice(this.#nextTurn, 1);
        this.#finishPending(stream, endsStream);
      }
    }
  }

  /** Forgets the data that wait in a stream that ends. */
  remove(stream: Http2Stream): void {
    if (stream.pending === undefined) return;
    const index = this.#waiting.indexOf(stream);
    if (index !== -1) this.#waiting.splice(index, 1);
    stream.pending = undefined;
  }

  #finishPending(stream: Http2Stream, endsStream: boolean): void {
    const { pendingTrailers } = stream;
    stream.endsAfterPending = false;
    stream.pending = undefined;
    stream.pendingStart = 0;
    stream.pendingTrailers = undefined;
    if (pendingTrailers !== undefined) this.#owner.writeTrailers(stream, pendingTrailers);
    else if (endsStream) this.#owner.onEndSent(stream);
    else stream.consumer?.onDrain(stream);
  }

  #canSend(stream: Http2Stream): boolean {
    return this.#window > 0 && stream.sendWindow > 0 && this.#output.queuedBytes === 0;
  }

  /** Sends one frame. Returns the position after its content. */
  #sendFrame(stream: Http2Stream, bytes: Uint8Array, start: number, end: number, endsStream: boolean): number {
    const length = Math.min(end - start, MAX_FRAME_BYTES, this.#window, stream.sendWindow);
    const frameEnd = start + length;
    const flags = endsStream && frameEnd === end ? FLAG.endStream : 0;
    this.#output.frame(FRAME.data, flags, stream.id, bytes, start, frameEnd);
    this.#window -= length;
    stream.sendWindow -= length;
    stream.sentBytes += length;
    this.#owner.onDataSent(length);
    return frameEnd;
  }
}

/** Adds data to the data that wait. The memory grows by half at least, because the data may come byte by byte. */
function appendPending(stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void {
  const { pending, pendingStart, pendingEnd } = stream;
  const waiting = pendingEnd - pendingStart;
  const length = end - start;
  if (pending === undefined || pending.length - pendingEnd < length) {
    const larger = new Uint8Array(waiting + Math.max(length, waiting >> 1));
    if (pending !== undefined) larger.set(pending.subarray(pendingStart, pendingEnd));
    stream.pending = larger;
    stream.pendingStart = 0;
    stream.pendingEnd = waiting;
  }
  stream.pending?.set(bytes.subarray(start, end), stream.pendingEnd);
  stream.pendingEnd += length;
}

/** Returns the code of the error if a WINDOW_UPDATE is invalid, otherwise `ERROR.none`. `window`: the new window. */
function errorOf(bytes: number, window: number): number {
  // RFC 9113 §6.9: an increment of 0 is an error.
  if (bytes === 0) return ERROR.protocol;
  // RFC 9113 §6.9.1: a window above 2^31 - 1 is an error.
  return window > MAX_WINDOW_BYTES ? ERROR.flowControl : ERROR.none;
}
