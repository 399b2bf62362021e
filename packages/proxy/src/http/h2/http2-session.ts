// Relays the HTTP/2 requests of one client connection. `Http2Connection` reads and writes its frames; each request is an
// `Http2Request`, which has an endpoint of its own.
import type { EndpointStats } from '@weir/model/data-plane';
import { COLUMN_COUNT } from '../../metering/counters.ts';
import { clientNameFor } from '../../metering/top-clients-counter.ts';
import type { DownstreamInfo } from '../../relay/downstream-info.ts';
import type { Session } from '../../relay/session.ts';
import { ticksFor } from '../../relay/timeout-wheel.ts';
import type { TcpStream } from '../../transport/tcp-transport.ts';
import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { HttpConnection } from '../http-connection.ts';
import type { HttpConnectionOptions } from '../http-connection-options.ts';
import { HEAD_TIMEOUT_MS, KEEP_ALIVE_MS, LINGER_MS } from '../request-timeouts.ts';
import { Http2Connection } from './connection.ts';
import type { ConnectionHandler } from './connection-handler.ts';
import type { DecodedHead } from './decoded-head.ts';
import type { ByteSink } from './frame-output.ts';
import { Http2Request } from './http2-request.ts';
import type { Http2RequestOwner, ResponsePacer } from './request-owner.ts';
import type { Http2Stream, StreamConsumer } from './stream.ts';

/** Takes the byte counts of the connection and is never read: each request counts its header blocks and DATA. */
const frameCounters: Float64Array = new Float64Array(COLUMN_COUNT);
const NO_BYTES: Uint8Array = new Uint8Array(0);

export class Http2Session
  extends HttpConnection
  implements ConnectionHandler, ByteSink, Http2RequestOwner, ResponsePacer
{
  readonly connection: Http2Connection;
  protected override readonly isHttp2 = true;
  readonly #requests = new Set<Http2Request>();
  /** Requests whose endpoints wait until the bandwidth limits let them be read. */
  readonly #throttled = new Set<Http2Request>();
  #isInHead = false;
  #deadlineBeforeHead = 0;
  #isLingering = false;
  /** How many requests the client has sent. */
  #requestCount = 0;
  #isReading = false;
  /** Bytes of the client that wait for the turn of the tenant. At most one read. */
  #unread: Uint8Array | undefined;
  #willFlush = false;

  constructor(client: TcpStream, info: DownstreamInfo, options: HttpConnectionOptions) {
    super(client, info, { ...options, byteCounters: frameCounters });
    this.connection =
      info.http2 ?? new Http2Connection({ role: 'server', sink: this, handler: this, now: () => this.now });
    if (info.http2 !== undefined) info.http2.moveTo({ sink: this, handler: this });
  }

  get isFirstRequest(): boolean {
    return this.#requestCount === 0;
  }

  protected override onAccepted(): void {
    if (this.info.http2 === undefined) this.connection.start();
  }

  protected override get endpointStream(): undefined {
    return undefined;
  }

  get endpointStats(): EndpointStats | undefined {
    return undefined;
  }

  get requests(): Iterable<Session> {
    return this.#requests;
  }

  protected override get hasRequest(): boolean {
    return this.#requests.size > 0;
  }

  protected override get awaitsRequest(): boolean {
    return true;
  }

  protected override get canTakeInput(): boolean {
    return this.#unread === undefined && !this.isPaced;
  }

  protected override onTimeout(): void {
    if (this.#isLingering || this.#isInHead) this.end('idle-timeout');
    // Each request has the timeouts of its own Service, and ends by itself.
    else if (this.hasRequest) this.timeouts.startIdle();
    else this.#linger();
  }

  protected override cancelRequest(): void {
    this.connection.onSinkClosed();
  }

  onEndpointUnavailable(): void {}

  onWorkerDrain(): void {
    // The first request of a connection is answered, because clients do not expect that a new connection ends.
    if (!this.isEnded && this.#requestCount > 0) this.guarded(() => this.connection.drain());
  }

  onEnd(): void {
    // A client that sends nothing more cannot open windows either.
    if (!this.isEnded) this.#linger();
  }

  onEndpointReady(): void {
    if (!this.isEnded && this.canTakeInput) this.readClient();
  }

  protected override read(bytes: Uint8Array): void {
    // An HTTP/2 connection that began before this session has no preread bytes, and delivers its first request itself.
    if (this.#isLingering || bytes.length === 0) return;
    if (this.#unread !== undefined || this.isPaced) {
      this.#unread = Buffer.concat([this.#unread ?? NO_BYTES, bytes]);
      return;
    }
    let at: number;
    const before = this.#requestCount;
    this.#isReading = true;
    try {
      // The turn of this connection covers one request.
      at = this.connection.receive(bytes, 1 + this.requestTurns.left);
    } finally {
      this.#isReading = false;
      this.requestTurns.take(Math.max(0, this.#requestCount - before - 1));
    }
    this.dropUncounted();
    if (this.isEnded) return;
    this.extendIdleDeadline();
    this.#watchHead();
    if (at < bytes.length && !this.#isLingering) this.#waitForTurn(bytes, at);
  }

  onUnread(bytes: Uint8Array): void {
    if (this.isEnded || this.#isLingering) return;
    // While the connection waits for its turn, `read` keeps all bytes.
    this.#waitForTurn(NO_BYTES, 0);
    this.onData(this.client, bytes);
  }

  /** Keeps the rest of a read with many requests until it is the turn of the tenant. */
  #waitForTurn(bytes: Uint8Array, at: number): void {
    this.#unread = new Uint8Array(bytes.subarray(at));
    this.client.readStop();
    if (!this.isPaced) this.requestTurns.wait(this);
  }

  override onTurn(): void {
    const bytes = this.#unread;
    if (bytes === undefined || this.isEnded) {
      super.onTurn();
      return;
    }
    if (this.isPaced) return;
    this.#unread = undefined;
    this.guarded(() => {
      this.read(bytes);
      if (!this.isEnded && this.canTakeInput) this.readClient();
    });
  }

  /** Bounds the time of an incomplete frame or head. Frames without a request do not extend the keep-alive timeout. */
  #watchHead(): void {
    const { isInHead } = this.connection;
    if (isInHead && !this.#isInHead) {
      this.#deadlineBeforeHead = this.deadline;
      if (this.deadline > this.context.wheel.now + ticksFor(HEAD_TIMEOUT_MS)) this.timeouts.set(HEAD_TIMEOUT_MS);
    } else if (!isInHead && this.#isInHead && !this.hasRequest) this.deadline = this.#deadlineBeforeHead;
    this.#isInHead = isInHead;
  }

  override onDrain(): void {
    if (this.isEnded) return;
    super.onDrain();
    this.connection.onSinkDrained();
  }

  protected override resumeEndpoints(): void {
    for (const request of this.#throttled) {
      this.#throttled.delete(request);
      request.resumeEndpoint();
      // Other connections may wait, and take turns with this one.
      if (this.#throttled.size > 0 && !this.maySend(0)) return;
    }
  }

  protected override readNextRequests(): void {
    if (this.#unread !== undefined) this.requestTurns.wait(this);
    else this.readClient();
  }

  // What the requests need.

  write(bytes: Uint8Array): number {
    const maxBytes = this.client.maxWriteBytes ?? Number.POSITIVE_INFINITY;
    for (let at = 0; at < bytes.length; at += maxBytes)
      this.#send(bytes.subarray(at, Math.min(bytes.length, at + maxBytes)));
    return this.client.queuedBytes;
  }

  /** Sends frames. The requests charge their bytes to the bandwidth limits. */
  #send(bytes: Uint8Array): void {
    if (!this.isEnded) this.writeToClient(bytes);
  }

  /** Sends all frames that requests write in this turn together. */
  flush(): void {
    if (this.#isReading || this.#willFlush || this.isEnded) return;
    this.#willFlush = true;
    this.context.transport.turns.runAtEnd(this.#flushNow);
  }

  readonly #flushNow = (): void => {
    this.#willFlush = false;
    if (!this.isEnded) this.guarded(() => this.connection.flush());
  };

  mayRead(request: Http2Request, sentBytes: number): boolean {
    if (this.maySend(sentBytes)) return true;
    this.#throttled.add(request);
    return false;
  }

  waitsForBandwidth(request: Http2Request): boolean {
    return this.#throttled.has(request) && this.isThrottled;
  }

  endResponse(request: Http2Request, sentBytes: number): void {
    this.#throttled.delete(request);
    if (!this.maySend(sentBytes) && !this.#isLingering && !this.isEnded) this.pace();
  }

  onProgress(): void {
    this.extendIdleDeadline();
  }

  onRequestEnd(request: Http2Request, { receivedBytes, sentBytes }: Http2Stream): void {
    this.#requests.delete(request);
    const { topClients } = this.context;
    if (topClients !== undefined) {
      const client = clientNameFor(this.info.client.address);
      topClients.add('bytes', request.upstream.service.entry, { client, amount: receivedBytes + sentBytes });
    }
    if (!this.hasRequest && !this.isEnded && !this.#isLingering) this.timeouts.set(KEEP_ALIVE_MS);
  }

  // What the connection reports.

  onRequest(stream: Http2Stream, head: DecodedHead, refusal: RequestHeadRefusal | undefined): StreamConsumer {
    if (refusal === undefined) this.countConnection();
    else this.onInvalidRequest();
    const request = new Http2Request(this, stream, this.options);
    this.#requests.add(request);
    // The request may end before it is returned.
    stream.consumer = request;
    this.timeouts.startIdle();
    request.start(head, refusal);
    this.#requestCount += 1;
    if (this.context.isDraining && !this.isEnded) this.connection.drain();
    // The client opens another connection, which the Service admits if the suspension has ended.
    if (this.upstream.service.isSuspended) this.connection.drain();
    return request;
  }

  onCapacity(): void {}

  onDrained(): void {
    this.#linger();
  }

  onFailure(): void {
    this.#linger();
  }

  /** Ends all requests, sends GOAWAY and FIN, and discards what the client still sends. */
  #linger(): void {
    if (this.isEnded || this.#isLingering) return;
    this.#isLingering = true;
    this.connection.end();
    this.client.shutdown();
    this.timeouts.set(LINGER_MS);
    if (!this.isPaced) return;
    this.isPaced = false;
    this.client.readStart();
  }
}
