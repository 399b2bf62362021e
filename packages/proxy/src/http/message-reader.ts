// Divides the bytes of one direction of a connection into heads and bodies, however the bytes arrive.
import type { BodyFraming } from './h1/body-framing.ts';
import { ChunkedBody } from './h1/chunked-body.ts';
import type { HeadFields } from './h1/head-fields.ts';
import type { ChunkRefusal, RequestHeadRefusal, ResponseHeadRefusal } from './h1/refusals.ts';
import { MAX_HEAD_BYTES, RequestHeadParser } from './h1/request-head.ts';
import { ResponseHeadParser } from './h1/response-head.ts';

export type MessageRefusal = RequestHeadRefusal | ResponseHeadRefusal | ChunkRefusal;

interface HeadParser {
  readonly bodyStart: number;
  readonly framing: BodyFraming;
  reset(requestMethod: number): void;
  parse(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | MessageRefusal;
}

/** Receives the parts of each message, in their order. Every method may call `MessageReader.stop`. */
export interface MessageHandler<P> {
  /**
   * Called with each head. The parser and its positions are valid until the method returns. `body`: the body follows.
   * `head`: another head follows (1xx). `other`: bytes of another protocol follow (101).
   */
  onHead(head: P): 'body' | 'head' | 'other';
  /** Called with data of the body, without framing. */
  onBodyData(bytes: Uint8Array, start: number, end: number): void;
  /** Called when the message is complete, just before `MessageReader.read` returns. `hasMore`: bytes follow the message. */
  onMessageEnd(trailers: HeadFields | undefined, hasMore: boolean): void;
  onOtherData(bytes: Uint8Array): void;
  /** Called when a message is not valid. Nothing more is read. */
  onRefusal(refusal: MessageRefusal): void;
}

// What the next byte belongs to.
const HEAD = 0;
const LENGTH_BODY = 1;
const CHUNKED_BODY = 2;
const BODY_UNTIL_CLOSE = 3;
const OTHER = 4;
/** The message is complete, or `stop` was called. */
const STOPPED = 5;

export type MessageReader<P extends HeadParser> = Reader<P>;

/** Returns a reader of the requests of a client. */
export function requestReader(): MessageReader<RequestHeadParser> {
  return new Reader(sharedRequestParser, () => new RequestHeadParser());
}

/** Returns a reader of the responses of an endpoint. */
export function responseReader(): MessageReader<ResponseHeadParser> {
  return new Reader(sharedResponseParser, () => new ResponseHeadParser());
}

/** Most heads arrive in one piece. All connections of this thread parse such heads with the same parser. */
const sharedRequestParser: RequestHeadParser = new RequestHeadParser();
const sharedResponseParser: ResponseHeadParser = new ResponseHeadParser();

class Reader<P extends HeadParser> {
  readonly #sharedParser: P;
  readonly #createParser: () => P;
  #state = HEAD;
  #hasMessageEnded = false;
  #requestMethod = 0;
  #partialHead: PartialHead<P> | undefined;
  #remainingBytes = 0;
  #chunks: ChunkedBody | undefined;

  constructor(sharedParser: P, createParser: () => P) {
    this.#sharedParser = sharedParser;
    this.#createParser = createParser;
  }

  /** Whether a part of a head has been read. */
  get isInHead(): boolean {
    return this.#partialHead !== undefined;
  }

  /** Whether a head is next and none of its bytes has been read. */
  get isAtHead(): boolean {
    return this.#state === HEAD && this.#partialHead === undefined;
  }

  /** Whether the end of the connection is the end of the message. */
  get endsWithConnection(): boolean {
    return this.#state === BODY_UNTIL_CLOSE;
  }

  get readsOtherProtocol(): boolean {
    return this.#state === OTHER;
  }

  /** Begins with the next message. `requestMethod` (`METHOD`) decides which responses have no body. */
  next(requestMethod: number): void {
    this.#state = HEAD;
    this.#requestMethod = requestMethod;
  }

  /** Reads nothing more before `next`. */
  stop(): void {
    this.#state = STOPPED;
    this.#partialHead = undefined;
  }

  /** Reads from `start` to the end of the message at most. Returns the position of the first byte that was not read. */
  read(bytes: Uint8Array, start: number, handler: MessageHandler<P>): number {
    const end = bytes.length;
    let at = start;
    this.#hasMessageEnded = false;
    while (!this.#hasMessageEnded && this.#state !== STOPPED && (at < end || this.#hasEmptyRest())) {
      switch (this.#state) {
        case HEAD:
          at = this.#readHead(bytes, at, handler);
          break;
        case LENGTH_BODY: {
          const dataEnd = Math.min(end, at + this.#remainingBytes);
          this.#remainingBytes -= dataEnd - at;
          if (dataEnd > at) handler.onBodyData(bytes, at, dataEnd);
          at = dataEnd;
          if (this.#remainingBytes === 0) this.#endMessage(handler, undefined, at < end);
          break;
        }
        case CHUNKED_BODY:
          at = this.#readChunks(bytes, at, handler);
          break;
        case BODY_UNTIL_CLOSE:
          handler.onBodyData(bytes, at, end);
          return end;
        default:
          handler.onOtherData(at === 0 ? bytes : bytes.subarray(at));
          return end;
      }
    }
    return at;
  }

  /** Whether the body is complete without further bytes. */
  #hasEmptyRest(): boolean {
    return this.#state === LENGTH_BODY && this.#remainingBytes === 0;
  }

  #readHead(bytes: Uint8Array, at: number, handler: MessageHandler<P>): number {
    const partial = this.#partialHead;
    const parser = partial?.parser ?? this.#sharedParser;
    if (partial === undefined) parser.reset(this.#requestMethod);
    const result = partial === undefined ? parser.parse(bytes, at, bytes.length) : partial.parse(bytes, at);
    if (result === 'more') {
      if (partial === undefined) this.#partialHead = this.#startPartialHead(bytes, at);
      return bytes.length;
    }
    this.#partialHead = undefined;
    if (result !== 'done') {
      this.#state = STOPPED;
      handler.onRefusal(result);
      return bytes.length;
    }
    const bodyStart = partial === undefined ? parser.bodyStart : partial.positionInPiece(parser.bodyStart);
    this.#startBody(parser, handler);
    return bodyStart;
  }

  #startPartialHead(bytes: Uint8Array, at: number): PartialHead<P> {
    const parser = this.#createParser();
    parser.reset(this.#requestMethod);
    const partial = new PartialHead(parser);
    partial.parse(bytes, at);
    return partial;
  }

  #startBody(head: P, handler: MessageHandler<P>): void {
    const { kind, length } = head.framing;
    const follows = handler.onHead(head);
    if (this.#state === STOPPED || follows === 'head') return;
    if (follows === 'other') this.#state = OTHER;
    else if (kind === 'until-close') this.#state = BODY_UNTIL_CLOSE;
    else if (kind === 'chunked') {
      this.#state = CHUNKED_BODY;
      this.#chunks ??= new ChunkedBody();
      this.#chunks.reset();
    } else {
      this.#state = LENGTH_BODY;
      this.#remainingBytes = length;
    }
  }

  #readChunks(bytes: Uint8Array, at: number, handler: MessageHandler<P>): number {
    const chunks = this.#chunks as ChunkedBody;
    const result = chunks.next(bytes, at, bytes.length);
    if (result === 'data') handler.onBodyData(bytes, chunks.dataStart, chunks.dataEnd);
    else if (result === 'done') this.#endMessage(handler, chunks.trailers, chunks.position < bytes.length);
    else if (result !== 'more') {
      this.#state = STOPPED;
      handler.onRefusal(result);
    }
    return chunks.position;
  }

  #endMessage(handler: MessageHandler<P>, trailers: HeadFields | undefined, hasMore: boolean): void {
    this.#state = STOPPED;
    this.#hasMessageEnded = true;
    handler.onMessageEnd(trailers, hasMore);
  }
}

const FIRST_HEAD_BYTES = 1_024;

/** A head that has not arrived in one piece: a copy of its bytes, and a parser of its own. */
class PartialHead<P extends HeadParser> {
  readonly parser: P;
  #bytes: Uint8Array = new Uint8Array(FIRST_HEAD_BYTES);
  #length = 0;
  /** The difference between a position in the last piece and the same position in `#bytes`. */
  #offset = 0;

  constructor(parser: P) {
    this.parser = parser;
  }

  /** Appends the piece from `start` on, and parses. */
  parse(piece: Uint8Array, start: number): 'more' | 'done' | MessageRefusal {
    const length = Math.min(piece.length - start, MAX_HEAD_BYTES - this.#length);
    this.#reserve(this.#length + length);
    this.#bytes.set(piece.subarray(start, start + length), this.#length);
    this.#offset = start - this.#length;
    this.#length += length;
    return this.parser.parse(this.#bytes, 0, this.#length);
  }

  /** Converts a position of the parser into a position in the last piece. */
  positionInPiece(position: number): number {
    return position + this.#offset;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
