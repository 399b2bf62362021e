import type { RequestHeadRefusal } from '../h1/refusals.ts';
import type { DecodedHead } from './decoded-head.ts';
import type { ByteSink } from './frame-output.ts';
import type { Http2Stream, StreamConsumer } from './stream.ts';

/** Receives the events of a connection that belong to no open stream. */
export interface ConnectionHandler {
  /**
   * Called in a server with each request. Returns the consumer of its stream, which gets no event if the stream has
   * ended before the handler returns. The handler answers a refused request with a status. `head` is valid until the
   * handler returns; the head of a refused request is not complete.
   */
  onRequest(stream: Http2Stream, head: DecodedHead, refusal: RequestHeadRefusal | undefined): StreamConsumer;
  /**
   * Takes the bytes of the peer that the previous handler received but did not read (see `Http2Connection.moveTo`). The
   * bytes are valid until the handler returns.
   */
  onUnread?(bytes: Uint8Array): void;
  /** Called in a client when `freeStreams` may have changed. */
  onCapacity(): void;
  /** Called after `drain`, when all streams have ended and the peer opens no more. The owner closes the transport. */
  onDrained(): void;
  /** Called once if the connection must end. GOAWAY is sent. The owner closes the transport. */
  onFailure(code: number): void;
}

export interface ConnectionOptions {
  readonly role: 'server' | 'client';
  readonly sink: ByteSink;
  readonly handler: ConnectionHandler;
  /** Returns the time in milliseconds. */
  readonly now: () => number;
}
