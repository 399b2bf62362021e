import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { AbuseLimits, MAX_QUEUED_BYTES } from './abuse-limits.ts';
import { ConnectionDrain } from './connection-drain.ts';
import type { ConnectionOptions } from './connection-handler.ts';
import { DataReceiver } from './data-receiver.ts';
import { DataSender, type SenderOwner } from './data-sender.ts';
import type { DecodedHead } from './decoded-head.ts';
import { EarlyEnds } from './early-ends.ts';
import { FrameOutput } from './frame-output.ts';
import { FrameReader } from './frames.ts';
import { encodeLines } from './head-encoder.ts';
import { HeadReceiver, type HeadReceiverOwner, promisedBytesOf } from './head-receiver.ts';
import { HpackEncoder } from './hpack/encoder.ts';
import { CLIENT_PREFACE, ERROR, FLAG, FRAME, MAX_STREAM_ID, readUint32 } from './protocol.ts';
import { ResetsAhead } from './resets-ahead.ts';
import { OWN_CLIENT_SETTINGS, OWN_SERVER_SETTINGS, PeerSettings } from './settings.ts';
import type { Http2Stream, StreamConsumer } from './stream.ts';
import { StreamTable } from './stream-table.ts';

/** Larger than any block: the largest head, and the lines that passes append. */
const BLOCK_BYTES: number = 256 * 1024;
/** The memory in which all connections of this thread encode blocks. */
const block: Uint8Array = new Uint8Array(BLOCK_BYTES);
const NO_BYTES: Uint8Array = new Uint8Array(0);

/**
 * One HTTP/2 connection (RFC 9113), without a transport: `receive` takes the bytes of the peer, the sink gets the bytes
 * for the peer, and consumers get the events of their streams. Frames leave at the end of `receive`; a caller that
 * sends at other times calls `flush`.
 */
export class Http2Connection implements SenderOwner, HeadReceiverOwner {
  readonly #isServer: boolean;
  handler: ConnectionOptions['handler'];
  readonly #streams: StreamTable;
  readonly #output: FrameOutput;
  readonly #limits: AbuseLimits;
  readonly #settings: PeerSettings;
  readonly #reader: FrameReader;
  readonly #resetsAhead = new ResetsAhead();
  readonly #heads: HeadReceiver;
  readonly #data: DataReceiver;
  readonly #sender: DataSender;
  readonly #earlyEnds: EarlyEnds;
  readonly #drain: ConnectionDrain;
  readonly #encoder: HpackEncoder = new HpackEncoder();
  #hasSettings = false;
  #isEnded = false;
  #isPeerDraining = false;

  constructor({ role, sink, handler, now }: ConnectionOptions) {
    const isServer = role === 'server';
    this.#isServer = isServer;
    this.handler = handler;
    this.#reader = new FrameReader({ hasPreface: isServer });
    this.#streams = new StreamTable(isServer);
    this.#output = new FrameOutput(sink);
    this.#limits = new AbuseLimits(now);
    this.#settings = new PeerSettings(!isServer);
    this.#heads = new HeadReceiver(isServer, this, this.#streams, this.#limits);
    this.#data = new DataReceiver(isServer, this, this.#streams, this.#limits, this.#output);
    this.#sender = new DataSender(this, this.#streams, this.#output);
    this.#earlyEnds = new EarlyEnds(this.#streams, this.#output);
    this.#drain = new ConnectionDrain({ isServer, streams: this.#streams, output: this.#output });
  }

  /** The number of open streams. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /**
   * Whether the peer has begun the preface, a head or a control frame and not ended it. The owner limits this time, because
   * the connection keeps up to 64 KiB of such a head.
   */
  get isInHead(): boolean {
    return this.#heads.openBlockId !== 0 || this.#reader.isInFrame;
  }

  /** How many further streams a client can open now. */
  get freeStreams(): number {
    // Further heads could exceed the limit of queued bytes, which ends the connection and all of its requests.
    if (this.#output.queuedBytes > MAX_QUEUED_BYTES / 2) return 0;
    if (!this.#streams.canOpen || this.#isEnded || this.#isPeerDraining || this.#drain.hasBegun) return 0;
    return Math.max(0, this.#settings.maxConcurrentStreams - this.#streams.size);
  }

  /** Whether a client may send an extended CONNECT (RFC 8441 §3). */
  get allowsConnectProtocol(): boolean {
    return this.#settings.allowsConnectProtocol;
  }

  /** Sends the preface (RFC 9113 §3.4). Must be called first. */
  start(): void {
    if (!this.#isServer) this.#output.bytes(CLIENT_PREFACE);
    this.#output.frame(FRAME.settings, 0, 0, this.#isServer ? OWN_SERVER_SETTINGS : OWN_CLIENT_SETTINGS);
    this.#data.open();
    this.flush();
  }

  /** Gives the connection to another owner. The handler may call this method. */
  moveTo({ sink, handler }: Pick<ConnectionOptions, 'sink' | 'handler'>): void {
    this.#output.sink = sink;
    this.handler = handler;
  }

  /** Reads bytes of the peer, but at most `maxHeads` heads. Returns how many bytes were read. The rest must come next. */
  receive(bytes: Uint8Array, maxHeads: number = Number.POSITIVE_INFINITY): number {
    const reader = this.#reader;
    reader.position = 0;
    this.#resetsAhead.begin(bytes);
    for (let heads = 0; heads < maxHeads && !this.#isEnded; heads += reader.type === FRAME.headers ? 1 : 0) {
      const result = reader.next(bytes, bytes.length);
      if (result === 'more') break;
      if (result === 'error') this.fail(reader.error);
      // RFC 9113 §3.4: the first frame is SETTINGS.
      else if (!this.#hasSettings && !reader.isSettings) this.fail(ERROR.protocol);
      // RFC 9113 §6.2: nothing comes between the frames of a header block.
      else if (this.#heads.isInterruptedBy(reader)) this.fail(ERROR.protocol);
      else if (result === 'data') this.#data.onData(reader);
      else this.#onFrame();
    }
    this.#resetsAhead.end();
    this.flush();
    return this.#isEnded ? bytes.length : reader.position;
  }

  /** Sends all frames that were written since the last flush. */
  flush(): void {
    this.#output.flush();
    if (this.#output.queuedBytes > MAX_QUEUED_BYTES) this.fail(ERROR.enhanceYourCalm);
  }

  /** Must be called when the transport has sent all bytes. */
  onSinkDrained(): void {
    this.#output.queuedBytes = 0;
    this.#sender.resume();
    this.flush();
  }

  /** Must be called when the transport is closed. All streams end. */
  onSinkClosed(): void {
    this.#end(ERROR.cancel);
  }

  /** Ends the connection when the open streams have ended. A server also serves the requests that are on their way. */
  drain(): void {
    if (this.#drain.hasBegun || this.#isEnded) return;
    this.#drain.begin();
    this.flush();
    this.#checkDrained();
  }

  /**
   * Ends the connection and all streams at once. GOAWAY names the last request that was begun, so that the peer can repeat
   * the requests after it (RFC 9113 §6.8). The owner closes the transport.
   */
  end(): void {
    if (this.#isEnded) return;
    this.#output.goaway(Math.min(this.#streams.lastPeerId, this.#streams.lastAcceptedId), ERROR.none);
    this.#output.flush();
    this.#end(ERROR.cancel);
  }

  // What consumers send.

  /**
   * Begins a head. The caller adds its fields, pseudo-fields first, and must then call `sendHead` or `open`, because
   * the peer must decode what was encoded.
   */
  beginHead(): HpackEncoder {
    this.#encoder.begin(block, 0);
    return this.#encoder;
  }

  /** Sends the begun head of a response. */
  sendHead(stream: Http2Stream, endsStream: boolean): void {
    this.#sender.assertOpen(stream);
    stream.sentBytes += this.#encoder.position;
    this.#output.headers(stream.id, block, this.#encoder.position, endsStream);
    if (endsStream) this.onEndSent(stream);
  }

  /**
   * Opens a stream with the begun head of a request. `freeStreams` must not be 0. `method` decides which responses have
   * no body.
   */
  open(consumer: StreamConsumer, method: number, endsStream: boolean): Http2Stream {
    const stream = this.#streams.open(this.#settings.initialWindowBytes);
    stream.consumer = consumer;
    stream.method = method;
    stream.hasEnded = endsStream;
    stream.sentBytes = this.#encoder.position;
    this.#output.headers(stream.id, block, this.#encoder.position, endsStream);
    return stream;
  }

  /**
   * Sends data. Returns how many bytes wait in the stream; if it is not 0, the caller sends nothing more before `onDrain`
   * but the end of the stream.
   */
  sendData(stream: Http2Stream, bytes: Uint8Array, start: number, end: number, endsStream = false): number {
    return this.#sender.send(stream, bytes, start, end, endsStream);
  }

  /** Ends the stream after its data. */
  sendEnd(stream: Http2Stream): void {
    this.sendData(stream, NO_BYTES, 0, 0, true);
  }

  /** Ends the stream with trailers: complete lines `name: value` with CRLF. */
  sendTrailers(stream: Http2Stream, lines: Uint8Array): void {
    this.#sender.sendTrailers(stream, lines);
  }

  /** Must be called when the consumer has passed on received bytes. The peer may then send as many further bytes. */
  consumed(stream: Http2Stream, bytes: number): void {
    if (this.#streams.has(stream)) this.#data.consume(stream, bytes);
  }

  /** Ends a stream at once, if it is open. */
  reset(stream: Http2Stream, code: number): void {
    if (!this.#streams.has(stream)) return;
    this.#sendReset(stream.id, code);
    this.#close(stream, code);
  }

  // Called by the parts of this connection.

  onEndSent(stream: Http2Stream): void {
    stream.hasEnded = true;
    if (stream.hasPeerEnded) this.#complete(stream);
    else if (this.#isServer && !stream.isTunnel) {
      // RFC 9113 §8.1: a server that has answered without the whole request lets the client stop with NO_ERROR.
      this.#earlyEnds.add(stream.id);
      this.#complete(stream);
    }
  }

  writeTrailers(stream: Http2Stream, lines: Uint8Array): void {
    encodeLines(this.beginHead(), lines, { start: 0, end: lines.length, kind: 'trailers' });
    this.sendHead(stream, true);
  }

  onDataSent(bytes: number): void {
    this.#limits.onDataSent(bytes);
  }

  onRequest(id: number, head: DecodedHead, refusal: RequestHeadRefusal | undefined, endsStream: boolean): void {
    const stream = this.#streams.add(id, this.#settings.initialWindowBytes);
    stream.hasHead = true;
    stream.hasPeerEnded = endsStream;
    stream.promisedBytes = promisedBytesOf(head);
    stream.method = head.methodId;
    stream.receivedBytes = head.blockBytes;
    stream.isTunnel = head.startsWebSocket;
    stream.isResetAhead = this.#resetsAhead.has(id, this.#reader.position);
    const consumer = this.handler.onRequest(stream, head, refusal);
    // The handler may have answered or reset the request.
    if (stream.id !== id) return;
    stream.consumer = consumer;
    if (endsStream) consumer.onEnd(stream);
  }

  onPeerEnd(stream: Http2Stream): void {
    const { id } = stream;
    // RFC 9113 §8.1.1: a message with less content than Content-Length is malformed.
    if (stream.promisedBytes > 0) {
      this.failStream(id, ERROR.protocol);
      return;
    }
    stream.hasPeerEnded = true;
    stream.consumer?.onEnd(stream);
    if (stream.id === id && stream.hasEnded) this.#complete(stream);
  }

  failStream(id: number, code: number): void {
    this.#sendReset(id, code);
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      stream.isInvalid = true;
      this.#close(stream, code);
    }
    if (!this.#limits.takeForcedReset()) this.fail(ERROR.enhanceYourCalm);
  }

  fail(code: number): void {
    if (this.#isEnded) return;
    this.#output.goaway(this.#streams.lastPeerId, code);
    this.#output.flush();
    this.#end(code);
    this.handler.onFailure(code);
  }

  // What the peer sends.

  #onFrame(): void {
    const reader = this.#reader;
    const { type, streamId, flags, bytes, start, end } = reader;
    if (type === FRAME.headers) this.#heads.onHeaders(reader);
    else if (type === FRAME.continuation) this.#heads.onContinuation(reader);
    else if (type === FRAME.rstStream) this.#onReset(streamId, readUint32(bytes, start));
    else if (type === FRAME.ping) this.#onPing(flags, bytes, start, end);
    else if (!this.#limits.takeControlFrame()) this.fail(ERROR.enhanceYourCalm);
    else if (type === FRAME.windowUpdate)
      this.#sender.onWindowUpdate(streamId, readUint32(bytes, start) & MAX_STREAM_ID);
    else if (type === FRAME.settings) this.#onSettings(flags, bytes, start, end);
    else if (type === FRAME.goaway) this.#onGoaway(readUint32(bytes, start) & MAX_STREAM_ID);
    else if (type === FRAME.priority) this.#heads.onPriority(reader);
  }

  #onReset(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      // RFC 9113 §6.4: RST_STREAM on an idle stream is a connection error.
      if (this.#streams.isIdle(id)) this.fail(ERROR.protocol);
      else if (!this.#limits.takeControlFrame()) this.fail(ERROR.enhanceYourCalm);
      return;
    }
    // RFC 9113 §8.1: a server may stop a request with NO_ERROR after a complete response, which the client keeps.
    if (!this.#isServer && stream.hasPeerEnded && code === ERROR.none) this.#complete(stream);
    else this.#close(stream, code);
    // Only the resets of clients are limited.
    if (this.#isServer && !this.#limits.takePeerReset()) this.fail(ERROR.enhanceYourCalm);
  }

  #onSettings(flags: number, bytes: Uint8Array, start: number, end: number): void {
    if ((flags & FLAG.ack) !== 0) return;
    this.#hasSettings = true;
    const before = this.#settings.initialWindowBytes;
    const error = this.#settings.apply(bytes, start, end);
    if (error !== ERROR.none) {
      this.fail(error);
      return;
    }
    this.#encoder.limitTable(this.#settings.headerTableBytes);
    // RFC 9113 §6.5.3: the acknowledgement comes before frames that use the new values.
    this.#output.frame(FRAME.settings, FLAG.ack, 0, NO_BYTES);
    this.#sender.widenStreams(this.#settings.initialWindowBytes - before);
    if (!this.#isServer) this.handler.onCapacity();
  }

  #onPing(flags: number, bytes: Uint8Array, start: number, end: number): void {
    if (!this.#limits.takePing()) this.fail(ERROR.enhanceYourCalm);
    else if ((flags & FLAG.ack) === 0) this.#output.frame(FRAME.ping, FLAG.ack, 0, bytes, start, end);
    else if (this.#earlyEnds.takeAnswer(bytes, start)) return;
    else {
      this.#drain.onPong();
      this.#checkDrained();
    }
  }

  #onGoaway(lastId: number): void {
    this.#isPeerDraining = true;
    if (this.#isServer) return;
    for (const stream of this.#streams.values().slice()) {
      // RFC 9113 §6.8: streams above the last one were not processed and can be repeated.
      if (stream.id <= lastId || !this.#streams.has(stream)) continue;
      this.#streams.rememberReset(stream.id);
      this.#close(stream, ERROR.refusedStream);
    }
    this.handler.onCapacity();
  }

  // The end of streams and of the connection.

  #sendReset(id: number, code: number): void {
    this.#streams.rememberReset(id);
    this.#output.number(FRAME.rstStream, id, code);
  }

  /** Ends a stream on which both sides have sent everything. */
  #complete(stream: Http2Stream): void {
    this.#limits.onExchange();
    this.#close(stream, undefined);
  }

  #close(stream: Http2Stream, code: number | undefined): void {
    this.#streams.delete(stream);
    this.#sender.remove(stream);
    this.#data.onClose(stream);
    stream.id = 0;
    stream.consumer?.onClose(stream, code);
    if (this.#isEnded) return;
    if (this.#drain.hasBegun) this.#checkDrained();
    else if (!this.#isServer) this.handler.onCapacity();
  }

  #checkDrained(): void {
    if (!this.#drain.isComplete || this.#isEnded) return;
    this.#isEnded = true;
    this.#output.flush();
    this.handler.onDrained();
  }

  #end(code: number): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    // A consumer may reset other streams when its stream ends.
    for (const stream of this.#streams.values().slice()) if (this.#streams.has(stream)) this.#close(stream, code);
  }
}
