import type { RequestHeadRefusal } from '../http/h1/refusals.ts';
import { Http2Connection } from '../http/h2/connection.ts';
import type { ConnectionHandler } from '../http/h2/connection-handler.ts';
import type { DecodedHead } from '../http/h2/decoded-head.ts';
import type { ByteSink } from '../http/h2/frame-output.ts';
import { sendAnswer } from '../http/h2/http1-answer.ts';
import type { Http2Stream, StreamConsumer } from '../http/h2/stream.ts';

/** The connection of a client whose first request decides which Service gets the connection. */
export interface Http2PrereadOwner extends ByteSink {
  /**
   * Routes the first request. If the client is routed, a session owns the connection when this method returns, unless
   * the session could not start. If the client is refused, returns the answer as an HTTP/1.1 response.
   */
  onFirstRequest(head: DecodedHead | RequestHeadRefusal): Uint8Array | undefined;
  /** Called when the client was refused and has got an answer or GOAWAY. `stream` carries the answer. */
  onRefused(stream: Http2Stream | undefined): void;
}

/**
 * Reads an HTTP/2 connection without TLS (RFC 9113 §3.3) up to its first request, on a shared listener. The client may
 * wait for SETTINGS before it sends a request, so the `Http2Connection` begins here, and the session continues it.
 */
export class Http2Preread implements ConnectionHandler {
  readonly connection: Http2Connection;
  readonly #owner: Http2PrereadOwner;

  /** `now` returns the time in milliseconds, and is called as long as the connection is open. */
  constructor(owner: Http2PrereadOwner, now: () => number) {
    this.#owner = owner;
    this.connection = new Http2Connection({ role: 'server', sink: owner, handler: this, now });
  }

  /** Reads the client's bytes up to the end of the first request's head. The session gets the rest, which may begin many requests. */
  receive(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && this.connection.handler === this) at += this.connection.receive(bytes.subarray(at), 1);
    if (at < bytes.length) this.connection.handler.onUnread?.(bytes.subarray(at));
  }

  onRequest(stream: Http2Stream, head: DecodedHead, refusal: RequestHeadRefusal | undefined): StreamConsumer {
    const { connection } = this;
    const answer = this.#owner.onFirstRequest(refusal ?? head);
    if (answer !== undefined) {
      if (answer.length > 0) sendAnswer(connection, stream, answer);
      this.#refuse(stream);
    } else if (connection.handler === this) connection.onSinkClosed();
    // The session may have ended with an error.
    else if (stream.id !== 0) return connection.handler.onRequest(stream, head, refusal);
    return NO_CONSUMER;
  }

  onCapacity(): void {}

  onDrained(): void {}

  onFailure(): void {
    this.#owner.onRefused(undefined);
  }

  #refuse(stream: Http2Stream): void {
    this.connection.end();
    this.#owner.onRefused(stream);
  }
}

const NO_CONSUMER: StreamConsumer = {
  onResponse() {},
  onData() {},
  onTrailers() {},
  onEnd() {},
  onDrain() {},
  onClose() {},
};
