import type { EndpointStats } from '@weir/model/data-plane';
import type { TcpStream, TcpTransport, Turns, Window } from '../../transport/tcp-transport.ts';
import type { HandshakeOwner } from '../endpoint-handshake.ts';
import type { EndpointTls } from '../endpoint-tls.ts';
import type { ListedConnection } from '../idle-connections.ts';
import { Http2Connection } from './connection.ts';
import type { ConnectionHandler } from './connection-handler.ts';
import { EndpointStream } from './endpoint-stream.ts';
import type { ByteSink } from './frame-output.ts';
import type { StreamConsumer } from './stream.ts';

export interface EndpointHttp2ConnectionOwner {
  /** Called when the connection carries no request any more, and again when an idle connection may carry more requests. */
  onConnectionIdle(connection: EndpointHttp2Connection): void;
  /** Called when the connection takes no further request and waits for the endpoint's FIN. */
  onConnectionClosing(connection: EndpointHttp2Connection): void;
  /** Called once, when the connection is closed. */
  onConnectionEnd(connection: EndpointHttp2Connection): void;
  /** Called after `onConnectionEnd` if the endpoint has chosen HTTP/1.1. The owner gets the stream. */
  onHttp1(connection: EndpointHttp2Connection): void;
}

export interface EndpointHttp2ConnectionOptions {
  readonly transport: TcpTransport;
  readonly window: Window;
  readonly tls: EndpointTls | undefined;
  readonly owner: EndpointHttp2ConnectionOwner;
}

/** One HTTP/2 connection to an endpoint, which carries many requests of one Service at a time. */
export class EndpointHttp2Connection implements HandshakeOwner, ConnectionHandler, ByteSink, ListedConnection {
  readonly stats: EndpointStats;
  readonly http2: Http2Connection;
  /** The value of `:scheme`. */
  readonly scheme: 'http' | 'https';
  /** The TLS of the connection; undefined for a connection without TLS. */
  readonly tls: EndpointTls | undefined;
  /** Replaced by the encrypted stream when a TLS handshake begins. */
  stream: TcpStream;
  /** The tick in which the connection was opened. Written by the owner. */
  openedAt = 0;
  /** The tick since which the connection is idle or, if later, closing. Written by the owner. */
  idleSince = 0;
  isListed = false;
  older: ListedConnection | undefined;
  newer: ListedConnection | undefined;
  readonly #owner: EndpointHttp2ConnectionOwner;
  readonly #turns: Turns;
  #window: Window;
  /** Requests whose heads are not sent yet. */
  readonly #reserved = new Set<EndpointStream>();
  /** The stream whose events are being delivered. */
  #reading: EndpointStream | undefined;
  #isReceiving = false;
  #willFlush = false;
  #isConnected = false;
  #isClosing = false;
  #isLost = false;
  /** Whether the endpoint speaks HTTP/2. With TLS, the endpoint may choose HTTP/1.1 during the handshake. */
  #isHttp2 = true;

  constructor(stats: EndpointStats, { transport, window, tls, owner }: EndpointHttp2ConnectionOptions) {
    this.stats = stats;
    this.tls = tls;
    this.scheme = tls === undefined ? 'http' : 'https';
    this.#owner = owner;
    this.#turns = transport.turns;
    this.#window = window;
    this.http2 = new Http2Connection({
      role: 'client',
      sink: this,
      handler: this,
      now: () => transport.turns.nowMs,
    });
    this.stream =
      tls === undefined
        ? transport.connect(stats.endpoint, this, window)
        : tls.connectWithHttp2(stats, this, {
            transport,
            onChosen: (isHttp2) => {
              this.#isHttp2 = isHttp2;
            },
          });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Whether the connection to the endpoint has ended. */
  get isLost(): boolean {
    return this.#isLost;
  }

  get hasEnded(): boolean {
    return this.#isLost;
  }

  get isIdle(): boolean {
    return this.http2.streamCount + this.#reserved.size === 0;
  }

  /** Opens a stream for a request. Returns undefined if the connection can carry no further request now. */
  reserve(window: Window): EndpointStream | undefined {
    if (this.#isClosing || this.#isLost || this.http2.freeStreams <= this.#reserved.size) return undefined;
    if (window !== this.#window) {
      this.#window = window;
      this.stream.setWindow?.(window);
    }
    const stream = new EndpointStream(this);
    this.#reserved.add(stream);
    return stream;
  }

  /**
   * Must be called when a reserved stream sends its head. Returns false, and releases the stream, if the endpoint takes no
   * request now.
   */
  take(stream: EndpointStream): boolean {
    if (this.http2.freeStreams > 0) return this.#reserved.delete(stream);
    this.release(stream);
    return false;
  }

  /** Must be called when a reserved stream is not needed any more. */
  release(stream: EndpointStream): void {
    if (!this.#reserved.delete(stream)) return;
    if (this.#isConnected) this.onCapacity();
    // No request waits for the connection any more.
    else if (this.#reserved.size === 0 && !this.#isLost) this.reset();
  }

  /** Sends all frames that are written in this turn together. */
  flushSoon(): void {
    if (this.#isReceiving || this.#willFlush) return;
    this.#willFlush = true;
    this.#turns.runAtEnd(this.#flush);
  }

  readonly #flush = (): void => {
    this.#willFlush = false;
    if (this.#isLost) return;
    try {
      this.http2.flush();
    } catch (thrown) {
      this.onThrow(this.stream, thrown);
    }
  };

  /**
   * Must be called before an event is delivered to the exchange of a stream. Ends the read of the previous stream, because the
   * sessions of this thread share their output.
   */
  enter(stream: EndpointStream): void {
    if (this.#reading === stream) return;
    const previous = this.#reading;
    this.#reading = stream;
    previous?.endRead();
  }

  #leave(): void {
    const previous = this.#reading;
    this.#reading = undefined;
    previous?.endRead();
    this.http2.flush();
  }

  /**
   * Takes no further request, and closes the connection when all requests have ended. Does nothing while requests wait
   * for the connect.
   */
  close(): void {
    if (this.#isClosing || this.#isLost) return;
    if (!this.#isConnected && this.isIdle) this.reset();
    else if (this.#isConnected) this.http2.drain();
  }

  /** Ends the connection at once. All requests fail. */
  reset(): void {
    this.#lose(undefined);
    this.stream.reset();
  }

  // The events of the transport.

  onConnect(): void {
    if (!this.#isHttp2) {
      this.#changeToHttp1();
      return;
    }
    this.#isConnected = true;
    this.stream.readStart();
    this.http2.start();
    for (const stream of this.#reserved) stream.onConnected();
    this.#leave();
  }

  /** Gives the stream to an HTTP/1.1 connection. The requests that wait are sent over HTTP/1.1. */
  #changeToHttp1(): void {
    this.#isLost = true;
    this.#owner.onConnectionEnd(this);
    this.#owner.onHttp1(this);
    for (const stream of this.#reserved) stream.onOtherVersion();
    this.#reserved.clear();
    this.#leave();
  }

  onData(_stream: TcpStream, bytes: Uint8Array): void {
    this.#isReceiving = true;
    try {
      this.http2.receive(bytes);
    } finally {
      this.#isReceiving = false;
    }
    this.#leave();
  }

  onDrain(): void {
    this.http2.onSinkDrained();
    this.#leave();
  }

  onEnd(): void {
    this.reset();
  }

  onClose(_stream: TcpStream, code: string | undefined): void {
    this.#lose(code);
  }

  onThrow(_stream: TcpStream, thrown: unknown): void {
    const [first] = this.#reserved;
    const stream = this.#reading ?? first;
    stream?.onThrow(thrown);
    this.reset();
  }

  #lose(errno: string | undefined): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#owner.onConnectionEnd(this);
    for (const stream of this.#reserved) stream.onNotConnected(errno);
    this.#reserved.clear();
    this.http2.onSinkClosed();
    this.#leave();
  }

  // What `Http2Connection` calls.

  write(bytes: Uint8Array): number {
    const { stream } = this;
    if (this.#isLost) return 0;
    const maxBytes = stream.maxWriteBytes ?? Number.POSITIVE_INFINITY;
    for (let at = 0; at < bytes.length; at += maxBytes)
      stream.write(bytes.subarray(at, Math.min(bytes.length, at + maxBytes)));
    return stream.queuedBytes;
  }

  onRequest(): StreamConsumer {
    throw new Error('a client receives no request');
  }

  onCapacity(): void {
    if (!this.isIdle || this.#isLost || this.#isClosing) return;
    // RFC 9113 §6.8: after GOAWAY, a connection without streams has no use.
    if (this.http2.freeStreams === 0) this.http2.drain();
    else this.#owner.onConnectionIdle(this);
  }

  onDrained(): void {
    this.#shutdown();
  }

  onFailure(): void {
    this.#shutdown();
    this.#leave();
  }

  #shutdown(): void {
    if (this.#isClosing || this.#isLost) return;
    this.#isClosing = true;
    this.stream.shutdown();
    this.#owner.onConnectionClosing(this);
  }
}
