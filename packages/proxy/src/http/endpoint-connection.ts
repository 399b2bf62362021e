import type { EndpointStats } from '@weir/model/data-plane';
import type { StreamEvents, TcpStream } from '../transport/tcp-transport.ts';
import { giveBackCopyMemory, MAX_COPIED_BYTES, takeCopyMemory } from './copy-memory.ts';
import type { EndpointTls } from './endpoint-tls.ts';
import type { HeadFields } from './h1/head-fields.ts';
import { keepAliveSeconds } from './h1/keep-alive.ts';
import type { ResponseHeadParser } from './h1/response-head.ts';
import type { ListedConnection } from './idle-connections.ts';
import { type MessageHandler, type MessageReader, responseReader } from './message-reader.ts';
import { CONNECTION_OPTION } from './passes/connection-options.ts';
import {
  type EndpointFailure,
  type Exchange,
  NO_DETAILS,
  type RequestBody,
  type RequestCarrier,
} from './request-carrier.ts';

export interface EndpointConnectionOwner {
  /** Keeps a connection whose response is complete for the next request, or closes the connection. */
  keep(connection: EndpointConnection): void;
  /** Called when the connection carries no request any more and waits for the endpoint's FIN. */
  onConnectionClosing(connection: EndpointConnection): void;
  /** Called once, when the connection is closed or has changed to another protocol. */
  onConnectionEnd(connection: EndpointConnection): void;
}

/** The connections to one endpoint. */
export interface ConnectionsTo {
  /** All connections that are not closed. */
  count: number;
  /** The idle connections. The connection that became idle last is the last. */
  readonly idle: EndpointConnection[];
}

const SWITCHING_PROTOCOLS = 101;
const NO_BYTES: Uint8Array = new Uint8Array(0);
const HEAD_END = '\r\n\r\n';
const LINE_END: Uint8Array = Buffer.from('\r\n');
const LAST_CHUNK: Uint8Array = Buffer.from('0\r\n');

/** One connection to an endpoint. Carries one request at a time, and waits for the next in `EndpointConnections`. */
export class EndpointConnection
  implements RequestCarrier, StreamEvents, MessageHandler<ResponseHeadParser>, ListedConnection
{
  readonly stats: EndpointStats;
  /** The TLS of the connection; undefined for a connection without TLS. */
  readonly tls: EndpointTls | undefined;
  /** Set right after the constructor, because the stream needs its event handler first. */
  stream!: TcpStream;
  /** The connections to the same endpoint. */
  readonly connections: ConnectionsTo;
  /** How many requests the connection has carried. */
  requests = 0;
  isListed = false;
  older: ListedConnection | undefined;
  newer: ListedConnection | undefined;
  /** The tick in which the connection was opened. Written by the owner. */
  openedAt = 0;
  /** The tick in which the connection began to close. Written by the owner. */
  closingSince = 0;
  /** The tick in which the connection, if it is still idle, is closed. Written by the owner. */
  idleUntil = 0;
  /** How many seconds the endpoint waits for the next request. Infinity if the endpoint does not say this. */
  endpointIdleSeconds: number = Number.POSITIVE_INFINITY;
  readonly #owner: EndpointConnectionOwner;
  readonly #reader: MessageReader<ResponseHeadParser> = responseReader();
  #exchange: Exchange | undefined;
  #isConnected = false;
  #isClosing = false;
  #hasEnded = false;
  #isReusable = true;
  #copy: Uint8Array = NO_BYTES;
  /** Whether the body comes without chunks, which this connection adds. */
  #addsChunks = false;
  #hasSentHead = false;

  constructor(
    stats: EndpointStats,
    tls: EndpointTls | undefined,
    { owner, connections }: { readonly owner: EndpointConnectionOwner; readonly connections: ConnectionsTo },
  ) {
    this.stats = stats;
    this.connections = connections;
    this.tls = tls;
    this.#owner = owner;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get isReused(): boolean {
    return this.requests > 1;
  }

  get source(): TcpStream {
    return this.stream;
  }

  get unsentBytes(): number {
    // The queue also has the framing of added chunks.
    return this.#addsChunks ? 0 : this.stream.queuedBytes;
  }

  begin(exchange: Exchange, requestMethod: number, body: RequestBody): void {
    this.#addsChunks = body === 'unframed';
    this.#hasSentHead = false;
    this.#exchange = exchange;
    this.#reader.next(requestMethod);
    this.requests += 1;
  }

  send(bytes: Uint8Array): void {
    this.stream.write(this.#addsChunks ? this.#withChunk(bytes) : bytes);
  }

  /** Returns the bytes with the framing of one chunk around the part after the head. */
  #withChunk(bytes: Uint8Array): Uint8Array {
    const start = this.#hasSentHead
      ? 0
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(HEAD_END) + 4;
    this.#hasSentHead = true;
    if (start === bytes.length) return bytes;
    const header = `${(bytes.length - start).toString(16)}\r\n`;
    return Buffer.concat([bytes.subarray(0, start), Buffer.from(header), bytes.subarray(start), LINE_END]);
  }

  sendEnd(trailers: Uint8Array): void {
    if (this.#addsChunks) this.stream.write(Buffer.concat([LAST_CHUNK, trailers, LINE_END]));
  }

  shutdown(): void {
    this.stream.shutdown();
  }

  copy(bytes: Uint8Array, at: number): number {
    const { length } = bytes;
    // An endpoint has no reason to close a new connection, and a request in several parts may have arrived in part.
    if (!this.isReused || at > 0 || length > MAX_COPIED_BYTES) return 0;
    this.#copy = takeCopyMemory(length);
    this.#copy.set(bytes);
    return length;
  }

  copied(length: number): Uint8Array {
    return this.#copy.subarray(0, length);
  }

  finish(isReusable: boolean): void {
    giveBackCopyMemory(this.#copy);
    this.#copy = NO_BYTES;
    if (isReusable && !this.stream.awaitsDrain) this.#owner.keep(this);
    else this.close();
  }

  reset(): void {
    this.#dropExchange();
    this.#end();
    this.stream.reset();
  }

  /**
   * Closes the connection after the bytes that were written. The owner must reset the connection if the endpoint does not
   * send FIN soon.
   */
  close(): void {
    if (this.#hasEnded || this.#isClosing) return;
    this.#isClosing = true;
    this.#dropExchange();
    this.stream.shutdown();
    // The session may have stopped reading, and then the endpoint's FIN would not be noticed.
    this.stream.readStart();
    this.#owner.onConnectionClosing(this);
  }

  onConnect(): void {
    this.#isConnected = true;
    this.stream.readStart();
    this.#exchange?.onConnected();
  }

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    const exchange = this.#exchange;
    // RFC 9112 §9.3: an endpoint must not send anything without a request.
    if (exchange === undefined) {
      this.reset();
      return;
    }
    this.#reader.read(bytes, 0, this);
    exchange.onReadEnd();
  }

  onEnd(): void {
    const exchange = this.#exchange;
    if (exchange === undefined) this.close();
    else if (this.#reader.readsOtherProtocol) exchange.onOtherEnd();
    else if (this.#reader.endsWithConnection) {
      this.onMessageEnd(undefined, false);
      exchange.onReadEnd();
    } else this.#fail(exchange, this.#failureOnClose, undefined);
  }

  onDrain(): void {
    this.#exchange?.onDrain();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    const exchange = this.#exchange;
    if (exchange === undefined || (code === undefined && this.#reader.readsOtherProtocol)) {
      // `onOtherEnd` has already told the exchange that the other protocol has ended.
      this.#dropExchange();
      this.#end();
    } else this.#fail(exchange, this.#failureOnClose, code);
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    const exchange = this.#exchange;
    this.reset();
    exchange?.onThrow(thrown);
  }

  onHead(head: ResponseHeadParser): 'body' | 'head' | 'other' {
    const { status, framing, minorVersion } = head;
    const options = this.#exchange?.onResponseHead(head);
    if (options === undefined) {
      if (this.#exchange !== undefined) this.#fail(this.#exchange, 'invalid-response', undefined);
      return 'body';
    }
    if (status === SWITCHING_PROTOCOLS) {
      this.#end();
      return 'other';
    }
    if (status < 200) return 'head';
    // RFC 9112 §9.3: an HTTP/1.0 connection does not persist without `keep-alive`, which Weir does not use.
    this.#isReusable = !framing.endsConnection && minorVersion > 0 && (options & CONNECTION_OPTION.close) === 0;
    this.endpointIdleSeconds = keepAliveSeconds(head.fields);
    return 'body';
  }

  onBodyData(bytes: Uint8Array, start: number, end: number): void {
    this.#exchange?.onResponseData(bytes, start, end);
  }

  onMessageEnd(trailers: HeadFields | undefined, hasMore: boolean): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    // RFC 9112 §9.3: bytes after the response belong to no request, so the connection cannot be trusted any more.
    exchange?.onResponseEnd(trailers, this.#isReusable && !hasMore);
  }

  onOtherData(bytes: Uint8Array): void {
    this.#exchange?.onOtherData(bytes);
  }

  onRefusal(): void {
    if (this.#exchange !== undefined) this.#fail(this.#exchange, 'invalid-response', undefined);
  }

  #fail(exchange: Exchange, failure: EndpointFailure, code: string | undefined): void {
    this.reset();
    exchange.onFailed(failure, code === undefined ? NO_DETAILS : { errno: code });
  }

  get #failureOnClose(): EndpointFailure {
    if (!this.#isConnected) return 'not-connected';
    return this.#reader.isAtHead ? 'closed' : 'incomplete';
  }

  #dropExchange(): void {
    this.#exchange = undefined;
    this.#reader.stop();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#owner.onConnectionEnd(this);
  }
}
