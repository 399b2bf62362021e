import type { EndpointStats } from '@weir/model/data-plane';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { ChunkedBody } from './h1/chunked-body.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { ResponseHeadParser } from './h1/response-head.ts';
import { PartialHead } from './partial-head.ts';

/** The request that a connection to an endpoint carries. The methods are called in the order of the response. */
export interface Exchange {
  onEndpointConnected(): void;
  /** Called with each head: any number of interim responses (1xx), then the final response. */
  onResponseHead(head: ResponseHeadParser): void;
  /** Called with data of the body, without framing, that are valid until the method returns. */
  onResponseData(bytes: Uint8Array, start: number, end: number): void;
  /**
   * Called when the response is complete, after which the connection carries no request any more. `isReusable` is false
   * if the connection cannot carry another one.
   */
  onResponseEnd(trailers: HeadFields | undefined, isReusable: boolean): void;
  /** Called when everything that `onResponseData` wrote during one read may be sent. */
  onResponseRead(): void;
  /** Called with bytes of another protocol, after a 101. */
  onTunnelData(bytes: Uint8Array): void;
  onTunnelEnd(): void;
  onEndpointDrain(): void;
  /**
   * Called instead of `onResponseEnd` if the connection ends or the response is invalid. The connection is closed.
   * `code` is the errno name of a failure.
   */
  onEndpointFailed(failure: EndpointFailure, code: string | undefined): void;
  onThrow(thrown: unknown): void;
}

export type EndpointFailure = 'not-connected' | 'closed' | 'invalid-response';

/** Called when an idle connection cannot be used any more. */
export interface ConnectionOwner {
  onIdleConnectionEnd(connection: EndpointConnection): void;
}

// What the next byte of the endpoint belongs to.
const IDLE = 0;
const HEAD = 1;
const LENGTH_BODY = 2;
const CHUNKED_BODY = 3;
const BODY_UNTIL_CLOSE = 4;
const TUNNEL = 5;
const CLOSED = 6;

const SWITCHING_PROTOCOLS = 101;
const parser: ResponseHeadParser = new ResponseHeadParser();

/** One connection to an endpoint. Carries one request at a time, and waits for the next in `EndpointConnections`. */
export class EndpointConnection implements StreamEvents {
  readonly stats: EndpointStats;
  /** Set right after the constructor, because the stream needs its event handler first. */
  stream!: TcpStream;
  /** How many requests the connection has carried. */
  requests = 0;
  /** The tick in which the connection became idle. */
  idleSince = 0;
  readonly #owner: ConnectionOwner;
  #exchange: Exchange | undefined;
  #isConnected = false;
  #state = IDLE;
  #requestMethod = 0;
  #remainingBytes = 0;
  #isReusable = true;
  #partialHead: PartialHead<ResponseHeadParser> | undefined;
  #chunks: ChunkedBody | undefined;

  constructor(stats: EndpointStats, owner: ConnectionOwner) {
    this.stats = stats;
    this.#owner = owner;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Carries a request from now on. `requestMethod` (`METHOD`) decides which responses have no body. */
  begin(exchange: Exchange, requestMethod: number): void {
    this.#exchange = exchange;
    this.#requestMethod = requestMethod;
    this.#state = HEAD;
    this.requests += 1;
  }

  /** Resets the connection. No method of the exchange is called any more. */
  reset(): void {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#exchange = undefined;
    this.stream.reset();
  }

  /** Closes the connection after the bytes that were written. */
  close(): void {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#exchange = undefined;
    this.stream.shutdown();
  }

  onConnect(): void {
    this.#isConnected = true;
    this.stream.readStart();
    this.#exchange?.onEndpointConnected();
  }

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    const exchange = this.#exchange;
    // RFC 9112 §9.3: bytes that belong to no response end the connection.
    if (exchange === undefined) {
      this.#endIdle();
      return;
    }
    if (this.#state === TUNNEL) exchange.onTunnelData(bytes);
    else {
      this.#read(exchange, bytes);
      exchange.onResponseRead();
    }
  }

  onEnd(): void {
    const exchange = this.#exchange;
    if (exchange === undefined) this.#endIdle();
    else if (this.#state === TUNNEL) exchange.onTunnelEnd();
    else if (this.#state === BODY_UNTIL_CLOSE) {
      this.#end(exchange, undefined, false);
      exchange.onResponseRead();
    } else this.#fail(exchange, 'closed', undefined);
  }

  onDrain(): void {
    this.#exchange?.onEndpointDrain();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    const exchange = this.#exchange;
    if (exchange === undefined) this.#endIdle();
    else this.#fail(exchange, this.#isConnected ? 'closed' : 'not-connected', code);
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    const exchange = this.#exchange;
    this.reset();
    exchange?.onThrow(thrown);
  }

  #read(exchange: Exchange, bytes: Uint8Array): void {
    let at = 0;
    while (this.#exchange === exchange && (at < bytes.length || this.#state === LENGTH_BODY)) {
      if (this.#state === HEAD) at = this.#readHead(exchange, bytes, at);
      else if (this.#state === LENGTH_BODY) {
        const end = Math.min(bytes.length, at + this.#remainingBytes);
        this.#remainingBytes -= end - at;
        if (end > at) exchange.onResponseData(bytes, at, end);
        at = end;
        if (this.#remainingBytes > 0) return;
        this.#end(exchange, undefined, at === bytes.length);
      } else if (this.#state === CHUNKED_BODY) at = this.#readChunks(exchange, bytes, at);
      else {
        if (this.#state === TUNNEL) exchange.onTunnelData(bytes.subarray(at));
        else exchange.onResponseData(bytes, at, bytes.length);
        return;
      }
    }
  }

  /** Reads a head. Returns the position after the head, or the end of the bytes. */
  #readHead(exchange: Exchange, bytes: Uint8Array, at: number): number {
    const partial = this.#partialHead;
    const head = partial === undefined ? parser : partial.parser;
    if (partial === undefined) head.reset(this.#requestMethod);
    const result = partial === undefined ? head.parse(bytes, at, bytes.length) : partial.parse(bytes, at);
    if (result === 'more') {
      if (partial === undefined) {
        this.#partialHead = new PartialHead(new ResponseHeadParser(), (own) => own.reset(this.#requestMethod));
        this.#partialHead.parse(bytes, at);
      }
      return bytes.length;
    }
    if (result !== 'done') {
      this.#fail(exchange, 'invalid-response', undefined);
      return bytes.length;
    }
    const bodyStart = partial === undefined ? head.bodyStart : partial.positionAfter(head.bodyStart);
    this.#partialHead = undefined;
    this.#startBody(exchange, head, bodyStart === bytes.length);
    return bodyStart;
  }

  #startBody(exchange: Exchange, head: ResponseHeadParser, isAtEnd: boolean): void {
    const { status, framing } = head;
    if (status === SWITCHING_PROTOCOLS) this.#state = TUNNEL;
    this.#isReusable = !framing.endsConnection && head.minorVersion > 0;
    exchange.onResponseHead(head);
    if (status < 200 || this.#exchange !== exchange) return;
    switch (framing.kind) {
      case 'none':
        this.#end(exchange, undefined, isAtEnd);
        return;
      case 'length':
        this.#state = LENGTH_BODY;
        this.#remainingBytes = framing.length;
        return;
      case 'chunked':
        this.#state = CHUNKED_BODY;
        this.#chunks ??= new ChunkedBody();
        this.#chunks.reset();
        return;
      case 'until-close':
        this.#state = BODY_UNTIL_CLOSE;
    }
  }

  #readChunks(exchange: Exchange, bytes: Uint8Array, start: number): number {
    const chunks = this.#chunks as ChunkedBody;
    const result = chunks.next(bytes, start, bytes.length);
    if (result === 'data') exchange.onResponseData(bytes, chunks.dataStart, chunks.dataEnd);
    else if (result === 'done') this.#end(exchange, chunks.trailers, chunks.position === bytes.length);
    else if (result !== 'more') {
      this.#fail(exchange, 'invalid-response', undefined);
      return bytes.length;
    }
    return chunks.position;
  }

  /** Marks the connection as not reusable, because the endpoint has asked for its end. */
  endAfterResponse(): void {
    this.#isReusable = false;
  }

  /** Ends the response. The connection is reusable only if nothing follows the response. */
  #end(exchange: Exchange, trailers: HeadFields | undefined, isAtEnd: boolean): void {
    this.#exchange = undefined;
    this.#state = IDLE;
    exchange.onResponseEnd(trailers, this.#isReusable && isAtEnd);
  }

  #fail(exchange: Exchange, failure: EndpointFailure, code: string | undefined): void {
    this.reset();
    exchange.onEndpointFailed(failure, code);
  }

  #endIdle(): void {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#owner.onIdleConnectionEnd(this);
    this.stream.reset();
  }
}
