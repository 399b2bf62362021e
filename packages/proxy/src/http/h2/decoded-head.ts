import { hostEndOf, portOf } from '../h1/authority.ts';
import { BodyFraming, type ResponseContext } from '../h1/body-framing.ts';
import { MAX_FIELD_BYTES } from '../h1/field-lines.ts';
import { FIELD, HeadFields, MAX_FIELDS } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import { type RequestLine, RequestLineParser, type TargetForm } from '../h1/request-line.ts';
import { asciiBytes, ByteWriter } from '../passes/byte-writer.ts';
import { joinCookies } from './cookies.ts';
import { type FieldTarget, MAX_FIELD_TARGET_BYTES } from './hpack/decoder.ts';
import { ENTRY_OVERHEAD_BYTES } from './hpack/dynamic-table.ts';
import { MIN_PSEUDO_ID } from './hpack/static-table.ts';
import { isValue, MAX_REQUEST_LINE_BYTES, PseudoFields } from './pseudo-fields.ts';

/** What a block of fields is. */
export type HeadKind = 'request' | 'response' | 'trailers';

/**
 * The result of a block. `malformed`: the stream must be reset (RFC 9113 §8.1.1). All other refusals are rules of Weir, the
 * same as for HTTP/1.1, and can be answered with a status.
 */
export type HeadResult = 'done' | 'malformed' | RequestHeadRefusal;

/** A list of fields above this size ends the connection, because a few bytes of HPACK can stand for many fields. */
const MAX_DECODED_BYTES: number = 4 * MAX_HEAD_BYTES;
/** The memory before the fields holds the request line with Host, or the status line. */
const FIELDS_START: number = MAX_REQUEST_LINE_BYTES;
const MEMORY_BYTES: number = FIELDS_START + 2 * MAX_HEAD_BYTES + MAX_FIELD_TARGET_BYTES;

const SPACE = 0x20;
const SLASH = 0x2f;
const ASTERISK = 0x2a;
const ZERO = 0x30;
const GET: Uint8Array = asciiBytes('GET');
const VERSION_AND_HOST: Uint8Array = asciiBytes(' HTTP/1.1\r\nhost: ');
const HOST_NAME_OFFSET: number = ' HTTP/1.1\r\n'.length;
const CRLF: Uint8Array = asciiBytes('\r\n');
const STATUS_LINE: Uint8Array = asciiBytes('HTTP/1.1 ??? \r\n');
const STATUS_DIGITS_OFFSET = 9;
const TRAILERS: Uint8Array = asciiBytes('trailers');
/** RFC 9113 §8.2.2: a message with one of these fields is malformed. */
const CONNECTION_FIELDS: number =
  (1 << FIELD.connection) |
  (1 << FIELD.keepAlive) |
  (1 << FIELD.proxyConnection) |
  (1 << FIELD.transferEncoding) |
  (1 << FIELD.upgrade);

/**
 * An HTTP/2 head or trailer section, presented as the HTTP/1.1 head that means the same: a request line, Host, and
 * field lines in one array. So routing, the passes and the writer of heads treat both versions alike, and the rules
 * about targets, hosts and lengths are those of the HTTP/1.1 parser. One instance is allocated per worker; a head is
 * valid until the next block of any connection is decoded.
 */
export class DecodedHead implements FieldTarget, RequestLine, ResponseContext {
  readonly memory: Uint8Array = new Uint8Array(MEMORY_BYTES);
  /** Where the next field begins. */
  at: number = FIELDS_START;
  readonly fields: HeadFields = new HeadFields();
  readonly framing: BodyFraming = new BodyFraming();
  // The parts of the request line, see `RequestLine`.
  methodStart = 0;
  methodEnd = 0;
  methodId: number = METHOD.other;
  targetForm: TargetForm = 'origin';
  targetStart = 0;
  targetEnd = 0;
  pathStart = 0;
  pathEnd = 0;
  hostStart = 0;
  hostEnd = 0;
  port = 0;
  readonly majorVersion: number = 2;
  /** The passes treat an HTTP/2 message as an HTTP/1.1 message. */
  minorVersion = 1;
  /** The length of the header block from which the head was decoded. */
  blockBytes = 0;
  /** Whether `:scheme` is `https`. */
  isHttps = false;
  /**
   * Whether the request is an extended CONNECT for a WebSocket (RFC 8441). Its method is presented as GET, as in the
   * HTTP/1.1 request that upgrades to a WebSocket. DATA in both directions belongs to the WebSocket.
   */
  startsWebSocket = false;
  // The parts of the status line, see `ResponseHeadParser`.
  status = 0;
  reasonStart = 0;
  reasonEnd = 0;
  /** The method of the request that a response answers (`METHOD`). */
  requestMethod: number = METHOD.other;
  readonly #line: RequestLineParser = new RequestLineParser(this);
  readonly #writer: ByteWriter = new ByteWriter(this.memory);
  readonly #pseudo: PseudoFields = new PseudoFields();
  #kind: HeadKind = 'request';
  #size = 0;
  #isMalformed = false;
  #refusal: RequestHeadRefusal | undefined;
  #hasRegularField = false;
  #hasHost = false;

  begin(kind: HeadKind, requestMethod: number = METHOD.other): void {
    const { fields } = this;
    this.#kind = kind;
    this.requestMethod = requestMethod;
    this.at = FIELDS_START;
    fields.bytes = this.memory;
    if (kind === 'request') this.#clearRequest();
    fields.count = kind === 'request' ? 1 : 0;
    fields.seen = 0;
    fields.repeated = 0;
    this.#size = 0;
    this.#isMalformed = false;
    this.#refusal = undefined;
    this.#hasRegularField = false;
    this.#pseudo.reset();
    this.#hasHost = false;
    this.isHttps = false;
    this.startsWebSocket = false;
  }

  /** Forgets the previous request, so that a refused request shows nothing of it. The first field is Host. */
  #clearRequest(): void {
    const { ids, nameStart, nameEnd, valueStart, valueEnd } = this.fields;
    ids[0] = FIELD.host;
    nameStart[0] = 0;
    nameEnd[0] = 0;
    valueStart[0] = 0;
    valueEnd[0] = 0;
    this.methodId = METHOD.other;
    this.methodStart = 0;
    this.methodEnd = 0;
    this.targetForm = 'origin';
    this.targetStart = 0;
    this.targetEnd = 0;
    this.pathStart = 0;
    this.pathEnd = 0;
    this.hostStart = 0;
    this.hostEnd = 0;
    this.port = 0;
  }

  /** The size of the head as SETTINGS_MAX_HEADER_LIST_SIZE counts it. */
  get size(): number {
    return this.#size;
  }

  take(nameEnd: number, valueEnd: number, id: number, isValid: boolean): boolean {
    // RFC 9113 §6.5.2: this is how SETTINGS_MAX_HEADER_LIST_SIZE counts.
    this.#size += valueEnd - this.at - 2 + ENTRY_OVERHEAD_BYTES;
    if (!isValid) this.#isMalformed = true;
    if (this.#size > MAX_HEAD_BYTES) this.#refuse('head-too-large');
    else if (id >= MIN_PSEUDO_ID) this.#takePseudo(id, nameEnd + 2, valueEnd);
    else this.#takeField(id, nameEnd, valueEnd);
    return this.#size <= MAX_DECODED_BYTES;
  }

  skip(): void {
    this.#hasRegularField = true;
    this.#refuse('field-too-large');
  }

  /** Checks the complete block. `endsStream`: no body follows. */
  finish(endsStream: boolean): HeadResult {
    if (this.#isMalformed) return 'malformed';
    if (this.#kind === 'request') return this.#finishRequest(endsStream);
    if (this.#kind === 'response') return this.#finishResponse(endsStream);
    return this.#refusal ?? 'done';
  }

  #refuse(refusal: RequestHeadRefusal | 'malformed' | undefined): void {
    if (refusal === 'malformed') this.#isMalformed = true;
    else this.#refusal ??= refusal;
  }

  #takePseudo(id: number, start: number, end: number): void {
    // RFC 9113 §8.3: pseudo-fields come before all other fields, and not in trailers.
    if (this.#kind === 'trailers' || this.#hasRegularField) this.#isMalformed = true;
    this.#refuse(this.#pseudo.take(id, this.memory, start, end));
  }

  #takeField(id: number, nameEnd: number, valueEnd: number): void {
    const { fields, at } = this;
    this.#hasRegularField = true;
    if (((1 << id) & CONNECTION_FIELDS) !== 0 && id < 32) this.#isMalformed = true;
    // RFC 9113 §8.2.2: TE contains nothing but `trailers`.
    if (id === FIELD.te && !isValue(this.memory, nameEnd + 2, valueEnd, TRAILERS)) this.#isMalformed = true;
    if (id === FIELD.host && this.#kind === 'request') {
      if (this.#hasHost) this.#refuse('several-hosts');
      this.#hasHost = true;
      this.#refuse(this.#pseudo.takeHost(this.memory, nameEnd + 2, valueEnd));
      return;
    }
    if (valueEnd - at > MAX_FIELD_BYTES) this.#refuse('field-too-large');
    if (fields.count === MAX_FIELDS) this.#refuse('too-many-fields');
    if (this.#refusal !== undefined) return;
    const { count } = fields;
    fields.ids[count] = id;
    fields.nameStart[count] = at;
    fields.nameEnd[count] = nameEnd;
    fields.valueStart[count] = nameEnd + 2;
    fields.valueEnd[count] = valueEnd;
    fields.count = count + 1;
    if (id < 32) {
      fields.repeated |= fields.seen & (1 << id);
      fields.seen |= 1 << id;
    }
    this.at = valueEnd + 2;
  }

  #finishRequest(endsStream: boolean): HeadResult {
    if (!this.#pseudo.isRequest()) return 'malformed';
    this.methodId = this.#pseudo.methodId;
    if (this.framing.decideRequest(this.fields, 1) !== undefined) return 'malformed';
    if (!this.#decideBody(endsStream, endsStream ? 'none' : 'chunked')) return 'malformed';
    return this.#refusal ?? this.#refusalOfRequest() ?? 'done';
  }

  #refusalOfRequest(): RequestHeadRefusal | undefined {
    const { isHttp, isHttps, isWebSocket, authority } = this.#pseudo;
    if (this.methodId === METHOD.connect && !isWebSocket) return 'connect-not-supported';
    if ((this.fields.seen & (1 << FIELD.underscored)) !== 0) return 'ambiguous-field-name';
    if (!isHttp && !isHttps) return 'invalid-target';
    if (authority.length < 0) return 'missing-host';
    const refusal = this.#writeRequestLine();
    if (refusal !== undefined) return refusal;
    // RFC 9113 §8.3.1: `:path` starts with a slash, except for OPTIONS of the whole server.
    if (this.targetForm === 'absolute') return 'invalid-target';
    this.isHttps = isHttps;
    if (isWebSocket) this.#startWebSocket();
    if ((this.fields.repeated & (1 << FIELD.cookie)) !== 0) this.at = joinCookies(this.fields, this.memory, this.at);
    return undefined;
  }

  /** RFC 9113 §8.5: DATA of CONNECT is not content. */
  #startWebSocket(): void {
    this.startsWebSocket = true;
    this.framing.kind = 'none';
    this.framing.length = 0;
  }

  /** Writes the request line and Host directly before the other fields, and parses both. */
  #writeRequestLine(): RequestHeadRefusal | undefined {
    const { values, method, path, authority, isWebSocket } = this.#pseudo;
    const writer = this.#writer;
    const { fields, memory } = this;
    const methodLength = isWebSocket ? GET.length : method.length;
    const length = methodLength + 1 + path.length + VERSION_AND_HOST.length + authority.length + CRLF.length;
    const start = FIELDS_START - length;
    writer.at = start;
    if (isWebSocket) writer.bytes(GET);
    else writer.range(values, method.start, method.start + methodLength);
    writer.byte(SPACE);
    const first = values[path.start];
    if (first !== SLASH && first !== ASTERISK) return 'invalid-target';
    writer.range(values, path.start, path.start + path.length);
    const nameStart = writer.at + HOST_NAME_OFFSET;
    writer.bytes(VERSION_AND_HOST);
    const valueStart = writer.at;
    writer.range(values, authority.start, authority.start + authority.length);
    const valueEnd = writer.at;
    writer.bytes(CRLF);
    this.#line.reset(start);
    const result = this.#line.parse(memory, nameStart);
    if (result !== 'done') return result === 'more' ? 'invalid-request-line' : result;
    // A path that contains a space and a version would end the request line early.
    if (this.#line.position !== nameStart) return 'invalid-request-line';
    fields.ids[0] = FIELD.host;
    fields.nameStart[0] = nameStart;
    fields.nameEnd[0] = nameStart + 4;
    fields.valueStart[0] = valueStart;
    fields.valueEnd[0] = valueEnd;
    fields.seen |= 1 << FIELD.host;
    const hostEnd = hostEndOf(memory, valueStart, valueEnd);
    const port = hostEnd === -1 ? -1 : portOf(memory, hostEnd, valueEnd);
    if (port === -1) return 'invalid-host';
    this.hostStart = valueStart;
    this.hostEnd = hostEnd;
    this.port = port;
    return undefined;
  }

  #finishResponse(endsStream: boolean): HeadResult {
    // RFC 9113 §8.3.2: a response has `:status`.
    if (!this.#pseudo.isResponse()) return 'malformed';
    const { framing } = this;
    const { status } = this.#pseudo;
    this.status = status;
    // RFC 9113 §8.1: a response that ends the stream is not an interim response.
    if (status < 200 && endsStream) return 'malformed';
    if (framing.decideResponse(this.fields, this) !== undefined) return 'malformed';
    if (framing.kind === 'until-close' || framing.kind === 'chunked') {
      // The end of the stream ends the body, so a body of unknown length that was cut off is always noticed.
      framing.kind = endsStream ? 'length' : 'chunked';
      framing.endsConnection = false;
    } else if (!this.#decideBody(endsStream, framing.kind)) return 'malformed';
    if (this.#refusal !== undefined) return this.#refusal;
    const start = FIELDS_START - STATUS_LINE.length;
    this.memory.set(STATUS_LINE, start);
    this.memory[start + STATUS_DIGITS_OFFSET] = ZERO + Math.floor(status / 100);
    this.memory[start + STATUS_DIGITS_OFFSET + 1] = ZERO + (Math.floor(status / 10) % 10);
    this.memory[start + STATUS_DIGITS_OFFSET + 2] = ZERO + (status % 10);
    this.reasonStart = FIELDS_START - CRLF.length;
    this.reasonEnd = this.reasonStart;
    return 'done';
  }

  /** Sets the kind of a body without Content-Length. Returns false if Content-Length promises more than follows. */
  #decideBody(endsStream: boolean, kind: 'none' | 'chunked' | 'length'): boolean {
    const { framing } = this;
    // RFC 9113 §8.1.1: Content-Length is the sum of the lengths of DATA.
    if (framing.kind === 'length') return !endsStream || framing.length === 0;
    framing.kind = kind;
    return true;
  }
}
