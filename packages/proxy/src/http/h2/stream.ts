import type { HeadFields } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import type { DecodedHead } from './decoded-head.ts';
import { INITIAL_WINDOW_BYTES } from './protocol.ts';

/** Receives what the peer sends on one stream. Bytes and heads are valid only until the method returns. */
export interface StreamConsumer {
  /** Called in a client with each interim response (1xx) and with the final response. */
  onResponse(stream: Http2Stream, head: DecodedHead): void;
  /** The consumer calls `consumed` when it has passed on the bytes. Until then, they take space in the window. */
  onData(stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void;
  onTrailers(stream: Http2Stream, trailers: HeadFields): void;
  /** Called when the peer has sent everything. */
  onEnd(stream: Http2Stream): void;
  /** Called when all data that was sent has left the stream, after a `sendData` that returned another number than 0. */
  onDrain(stream: Http2Stream): void;
  /**
   * Called once, as the last event. `code` is undefined if both sides have sent everything; otherwise it is the code of the
   * reset, by either side, or of the connection error. `ERROR.refusedStream` means that the peer has not processed the
   * request (RFC 9113 §8.7). Nothing can be sent afterwards.
   */
  onClose(stream: Http2Stream, code: number | undefined): void;
}

/**
 * One stream. Each stream has a record of its own, and no pool reuses records: code that still held the record of an
 * ended stream could otherwise send the response of one request to another.
 */
export class Http2Stream {
  /** 0 after the last event. */
  id: number;
  consumer: StreamConsumer | undefined;
  /** How many bytes of DATA the peer still allows. Negative if the peer has reduced the window. */
  sendWindow: number;
  /** How many bytes of DATA the peer may still send. */
  receiveWindow: number = INITIAL_WINDOW_BYTES;
  /** The received bytes that the consumer has not passed on yet. */
  unconsumedBytes = 0;
  /** The consumed bytes that no WINDOW_UPDATE has announced yet. */
  unannouncedBytes = 0;
  /** How many bytes of DATA Content-Length still promises; -1 if the length is unknown. */
  promisedBytes = -1;
  /** The method of the request (`METHOD`). */
  method: number = METHOD.other;
  /** Whether DATA is another protocol, whose directions end one by one (RFC 9113 §8.5). */
  isTunnel = false;
  /** Whether the client has reset the request in bytes that are not processed yet, so that no answer is needed. */
  isResetAhead = false;
  /** Whether the final head of the peer has arrived. */
  hasHead = false;
  /** Whether END_STREAM was received. */
  hasPeerEnded = false;
  /** Whether the stream has ended because the peer sent something that is not valid. */
  isInvalid = false;
  /** Whether END_STREAM was sent. */
  hasEnded = false;
  /** The bytes of header blocks and DATA, without padding, that have arrived. */
  receivedBytes = 0;
  /** The bytes of header blocks and DATA that have left the stream. */
  sentBytes = 0;
  /** Data that waits for a window or for the transport, from `pendingStart` to `pendingEnd`. */
  pending: Uint8Array | undefined;
  pendingStart = 0;
  pendingEnd = 0;
  /** Whether the stream ends after the pending data. */
  endsAfterPending = false;
  /** The lines of trailers that follow the pending data. */
  pendingTrailers: Uint8Array | undefined;

  constructor(id: number, sendWindow: number) {
    this.id = id;
    this.sendWindow = sendWindow;
  }
}
