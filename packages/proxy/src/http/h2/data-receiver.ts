import type { AbuseLimits } from './abuse-limits.ts';
import type { FrameOutput } from './frame-output.ts';
import type { FrameReader } from './frames.ts';
import { ERROR, FLAG, FRAME, INITIAL_WINDOW_BYTES } from './protocol.ts';
import type { Http2Stream } from './stream.ts';
import type { StreamTable } from './stream-table.ts';

/** The window of the connection. That of each stream is the initial window of 65,535 bytes. */
const CONNECTION_WINDOW_BYTES: number = 1024 * 1024;
/** A WINDOW_UPDATE is sent once it announces this many bytes. */
const ANNOUNCED_STREAM_BYTES: number = INITIAL_WINDOW_BYTES >> 1;
const ANNOUNCED_CONNECTION_BYTES: number = CONNECTION_WINDOW_BYTES >> 1;

/** What receivers of frames ask of their connection. */
export interface ReceiverOwner {
  /** Ends the connection (RFC 9113 §5.4.1). */
  fail(code: number): void;
  /** Resets a stream because of an error of the peer (RFC 9113 §5.4.2). */
  failStream(id: number, code: number): void;
  /** The peer has sent END_STREAM. */
  onPeerEnd(stream: Http2Stream): void;
}

/** Receives DATA, and bounds the received bytes that consumers have not passed on by windows (RFC 9113 §5.2). */
export class DataReceiver {
  /**
   * Whether the connection announces window only for bytes that consumers have passed on. In the role of a client, it
   * announces window at once: the streams belong to different users, and a user who does not read must not stop the
   * other streams. The windows of the streams still bound the bytes.
   */
  readonly #boundsConnection: boolean;
  readonly #owner: ReceiverOwner;
  readonly #streams: StreamTable;
  readonly #limits: AbuseLimits;
  readonly #output: FrameOutput;
  #window = CONNECTION_WINDOW_BYTES;
  #unannouncedBytes = 0;

  constructor(isServer: boolean, owner: ReceiverOwner, streams: StreamTable, limits: AbuseLimits, output: FrameOutput) {
    this.#boundsConnection = isServer;
    this.#owner = owner;
    this.#streams = streams;
    this.#limits = limits;
    this.#output = output;
  }

  /** Announces the window of the connection. */
  open(): void {
    this.#output.number(FRAME.windowUpdate, 0, CONNECTION_WINDOW_BYTES - INITIAL_WINDOW_BYTES);
  }

  /** Takes a piece of DATA. */
  onData(reader: FrameReader): void {
    const { streamId } = reader;
    const length = reader.end - reader.start;
    if (reader.isFirst && !this.#takeFrame(reader)) return;
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      // The consumer of a stream that was reset reads nothing more.
      this.#announceConnection(length);
      return;
    }
    if (stream.promisedBytes >= 0) {
      stream.promisedBytes -= length;
      // RFC 9113 §8.1.1: a message with more content than Content-Length is malformed.
      if (stream.promisedBytes < 0) {
        this.#announceConnection(length);
        this.#owner.failStream(streamId, ERROR.protocol);
        return;
      }
    }
    if (length > 0) {
      stream.receivedBytes += length;
      stream.unconsumedBytes += length;
      if (!this.#boundsConnection) this.#announceConnection(length);
      this.#limits.onData(length);
      stream.consumer?.onData(stream, reader.bytes, reader.start, reader.end);
    }
    // The consumer may have reset the stream.
    if (reader.isLast && (reader.flags & FLAG.endStream) !== 0 && stream.id === streamId) this.#owner.onPeerEnd(stream);
  }

  /** Lets the peer send as many bytes as a consumer has passed on. */
  consume(stream: Http2Stream, bytes: number): void {
    stream.unconsumedBytes -= bytes;
    if (this.#boundsConnection) this.#announceConnection(bytes);
    this.#announceStream(stream, bytes);
  }

  /** Returns the bytes of a closed stream that nobody reads any more to the window of the connection. */
  onClose(stream: Http2Stream): void {
    if (this.#boundsConnection) this.#announceConnection(stream.unconsumedBytes);
  }

  /** Checks a frame. Returns false if the connection has failed. */
  #takeFrame(reader: FrameReader): boolean {
    const { streamId, length, paddingBytes } = reader;
    // RFC 9113 §6.9.1: a peer that exceeds the window of the connection makes a connection error.
    if (length > this.#window) return this.#fail(ERROR.flowControl);
    this.#window -= length;
    this.#announceConnection(paddingBytes);
    if (length === paddingBytes && (reader.flags & FLAG.endStream) === 0 && !this.#limits.takeControlFrame()) {
      return this.#fail(ERROR.enhanceYourCalm);
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      // RFC 9113 §5.1: DATA on an idle stream is a connection error, and so is DATA after END_STREAM.
      if (this.#streams.isIdle(streamId)) return this.#fail(ERROR.protocol);
      return this.#streams.isIgnored(streamId) || this.#fail(ERROR.streamClosed);
    }
    const error = errorOf(stream, length);
    if (error !== ERROR.none) {
      this.#owner.failStream(streamId, error);
      return true;
    }
    stream.receiveWindow -= length;
    this.#announceStream(stream, paddingBytes);
    return true;
  }

  #fail(code: number): false {
    this.#owner.fail(code);
    return false;
  }

  #announceConnection(bytes: number): void {
    this.#unannouncedBytes += bytes;
    if (this.#unannouncedBytes < ANNOUNCED_CONNECTION_BYTES) return;
    this.#output.number(FRAME.windowUpdate, 0, this.#unannouncedBytes);
    this.#window += this.#unannouncedBytes;
    this.#unannouncedBytes = 0;
  }

  #announceStream(stream: Http2Stream, bytes: number): void {
    stream.unannouncedBytes += bytes;
    if (stream.unannouncedBytes < ANNOUNCED_STREAM_BYTES || stream.hasPeerEnded) return;
    this.#output.number(FRAME.windowUpdate, stream.id, stream.unannouncedBytes);
    stream.receiveWindow += stream.unannouncedBytes;
    stream.unannouncedBytes = 0;
  }
}

/** Returns the code of the stream error if DATA of this length is not allowed now, otherwise `ERROR.none`. */
function errorOf(stream: Http2Stream, length: number): number {
  // RFC 9113 §5.1: DATA after END_STREAM of an open stream is a stream error.
  if (stream.hasPeerEnded) return ERROR.streamClosed;
  // RFC 9113 §8.1: a message begins with its head.
  if (!stream.hasHead) return ERROR.protocol;
  // RFC 9113 §6.9.1: a peer that exceeds the window of a stream makes a stream error.
  return length > stream.receiveWindow ? ERROR.flowControl : ERROR.none;
}
