import type { EndpointStats } from '@weir/model/data-plane';
import { giveBackCopyMemory, MAX_COPIED_BYTES, takeCopyMemory } from '../copy-memory.ts';
import type { HeadFields } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import {
  type EndpointFailure,
  type Exchange,
  type FailureDetails,
  NO_DETAILS,
  type RequestBody,
  type RequestCarrier,
  type ResponseSource,
} from '../request-carrier.ts';
import type { DecodedHead } from './decoded-head.ts';
import type { EndpointHttp2Connection } from './endpoint-http2-connection.ts';
import { encodeRequest } from './head-encoder.ts';
import { ERROR } from './protocol.ts';
import type { Http2Stream, StreamConsumer } from './stream.ts';

/**
 * The size of all interim responses (1xx) to one request. Flow control does not bound them, and a few bytes of HPACK can
 * stand for a large head.
 */
const MAX_INTERIM_BYTES: number = MAX_HEAD_BYTES;
const NO_BYTES: Uint8Array = new Uint8Array(0);

/** One request on an HTTP/2 connection to an endpoint. */
export class EndpointStream implements RequestCarrier, ResponseSource, StreamConsumer {
  readonly isReused: boolean;
  readonly #connection: EndpointHttp2Connection;
  #exchange: Exchange | undefined;
  /** The exchange that has got a part of the response, and whose `onReadEnd` must be called. */
  #readExchange: Exchange | undefined;
  #method: number = METHOD.other;
  #hasBody = false;
  /** Undefined before the head is sent. */
  #stream: Http2Stream | undefined;
  #copy = NO_BYTES;
  #isPaused = false;
  /** The received bytes of the response for which the endpoint may not send further bytes yet. */
  #unconsumedBytes = 0;
  #interimBytes = 0;

  constructor(connection: EndpointHttp2Connection) {
    this.#connection = connection;
    this.isReused = connection.isConnected;
  }

  get stats(): EndpointStats {
    return this.#connection.stats;
  }

  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  get source(): this {
    return this;
  }

  get awaitsDrain(): boolean {
    return this.#stream?.pending !== undefined;
  }

  /** All requests of a connection share the write queue, which does not say which bytes belong to this request. */
  get unsentBytes(): number {
    return 0;
  }

  begin(exchange: Exchange, method: number, body: RequestBody): void {
    this.#exchange = exchange;
    this.#method = method;
    this.#hasBody = body !== 'none';
  }

  send(bytes: Uint8Array): void {
    const stream = this.#stream;
    if (stream === undefined) this.#open(bytes);
    else this.#sendData(stream, bytes, 0);
    this.#connection.flushSoon();
  }

  #open(bytes: Uint8Array): void {
    const { http2, scheme } = this.#connection;
    if (!this.#connection.take(this)) {
      this.#fail('refused', NO_DETAILS);
      return;
    }
    const bodyStart = encodeRequest(http2.beginHead(), bytes, scheme);
    this.#stream = http2.open(this, this.#method, !this.#hasBody);
    if (bodyStart < bytes.length) this.#sendData(this.#stream, bytes, bodyStart);
  }

  #sendData(stream: Http2Stream, bytes: Uint8Array, start: number): void {
    // The endpoint may have ended the stream. The session gets the event of this end later.
    if (stream.id !== 0 && start < bytes.length)
      this.#connection.http2.sendData(stream, bytes, start, bytes.length, false);
  }

  sendEnd(trailers: Uint8Array): void {
    const stream = this.#stream;
    if (stream === undefined || stream.id === 0) return;
    if (trailers.length > 0) this.#connection.http2.sendTrailers(stream, trailers);
    else this.#connection.http2.sendEnd(stream);
    this.#connection.flushSoon();
  }

  shutdown(): void {
    this.sendEnd(NO_BYTES);
  }

  copy(bytes: Uint8Array, at: number): number {
    const length = at + bytes.length;
    if (length > MAX_COPIED_BYTES) return 0;
    if (length > this.#copy.length) {
      const larger = takeCopyMemory(length);
      larger.set(this.#copy.subarray(0, at));
      giveBackCopyMemory(this.#copy);
      this.#copy = larger;
    }
    this.#copy.set(bytes, at);
    return length;
  }

  copied(length: number): Uint8Array {
    return this.#copy.subarray(0, length);
  }

  finish(): void {
    giveBackCopyMemory(this.#copy);
    this.#copy = NO_BYTES;
    const stream = this.#stream;
    // RFC 9113 §8.1: a server may answer before the end of the request. Then the server does not need the rest.
    if (stream !== undefined && !stream.hasEnded) this.#reset(ERROR.cancel);
  }

  reset(): void {
    this.#exchange = undefined;
    if (this.#stream === undefined) this.#connection.release(this);
    else this.#reset(ERROR.cancel);
  }

  #reset(code: number): void {
    if (this.#stream === undefined) return;
    this.#connection.http2.reset(this.#stream, code);
    this.#connection.flushSoon();
  }

  // The response as a source. Data is passed on as soon as it arrives; a paused stream only gets no further window.

  readStart(): void {
    this.#isPaused = false;
    this.#consume();
    this.#connection.flushSoon();
  }

  readStop(): void {
    this.#isPaused = true;
  }

  #consume(): void {
    const bytes = this.#unconsumedBytes;
    this.#unconsumedBytes = 0;
    if (bytes > 0 && this.#stream !== undefined) this.#connection.http2.consumed(this.#stream, bytes);
  }

  /** Ends the delivery of the events of one read. */
  endRead(): void {
    const exchange = this.#readExchange;
    this.#readExchange = undefined;
    if (exchange === undefined) return;
    try {
      exchange.onReadEnd();
    } catch (thrown) {
      this.reset();
      exchange.onThrow(thrown);
    }
    if (!this.#isPaused) this.#consume();
  }

  // The events of the connection.

  onConnected(): void {
    this.#deliver((exchange) => exchange.onConnected());
  }

  onNotConnected(errno: string | undefined): void {
    this.#fail('not-connected', { errno });
  }

  onOtherVersion(): void {
    this.#fail('other-version', NO_DETAILS);
  }

  onThrow(thrown: unknown): void {
    const exchange = this.#exchange;
    this.reset();
    exchange?.onThrow(thrown);
  }

  // The events of the stream.

  onResponse(_stream: Http2Stream, head: DecodedHead): void {
    if (head.status < 200) this.#interimBytes += head.size;
    this.#deliver((exchange) => {
      this.#readExchange = exchange;
      const isTooMuch = this.#interimBytes > MAX_INTERIM_BYTES;
      if (!isTooMuch && (exchange.onResponseHead(head) !== undefined || this.#exchange === undefined)) return;
      // In this order, because the reset ends the stream.
      this.#fail('invalid-response', NO_DETAILS);
      this.#reset(ERROR.cancel);
    });
  }

  onData(_stream: Http2Stream, bytes: Uint8Array, start: number, end: number): void {
    this.#unconsumedBytes += end - start;
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.#connection.enter(this);
    this.#readExchange = exchange;
    try {
      exchange.onResponseData(bytes, start, end);
    } catch (thrown) {
      this.onThrow(thrown);
    }
  }

  onTrailers(stream: Http2Stream, trailers: HeadFields): void {
    // RFC 9113 §8.1.1: a response that is shorter than its Content-Length is malformed. The stream is reset next.
    if (stream.promisedBytes <= 0) this.#finish(trailers);
  }

  onEnd(): void {
    this.#finish(undefined);
  }

  #finish(trailers: HeadFields | undefined): void {
    this.#deliver((exchange) => {
      this.#exchange = undefined;
      this.#readExchange = exchange;
      exchange.onResponseEnd(trailers, true);
    });
  }

  onDrain(): void {
    this.#deliver((exchange) => exchange.onDrain());
  }

  onClose(stream: Http2Stream, code: number | undefined): void {
    if (stream.isInvalid) this.#fail('invalid-response', NO_DETAILS);
    else if (this.#connection.isLost) this.#fail(stream.hasHead ? 'incomplete' : 'closed', NO_DETAILS);
    // RFC 9113 §8.7: REFUSED_STREAM, also that of GOAWAY, says that the request was not processed.
    else if (code === ERROR.refusedStream && !stream.hasHead) this.#fail('refused', NO_DETAILS);
    // These codes would tell the client that the response is complete, or that the request was not processed.
    else if (code === ERROR.none || code === ERROR.refusedStream) this.#fail('reset', { resetCode: ERROR.internal });
    else this.#fail('reset', { resetCode: code });
  }

  #fail(failure: EndpointFailure, details: FailureDetails): void {
    this.#deliver((exchange) => {
      this.#exchange = undefined;
      this.#readExchange = undefined;
      exchange.onFailed(failure, details);
    });
  }

  #deliver(event: (exchange: Exchange) => void): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.#connection.enter(this);
    // An exception ends only the request in which it was thrown.
    try {
      event(exchange);
    } catch (thrown) {
      this.reset();
      exchange.onThrow(thrown);
    }
  }
}
