import { hostEndOf, isSameHost, portOf } from '../h1/authority.ts';
import { BodyFraming, type ResponseContext } from '../h1/body-framing.ts';
import { MAX_FIELD_BYTES } from '../h1/field-lines.ts';
import { FIELD, HeadFields, MAX_FIELDS } from '../h1/head-fields.ts';
import { METHOD, methodIdOf } from '../h1/methods.ts';
import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import { MAX_TARGET_BYTES, type RequestLine, RequestLineParser, type TargetForm } from '../h1/request-line.ts';
import { asciiBytes, ByteWriter } from '../passes/byte-writer.ts';
import { joinCookies } from './cookies.ts';
import { type FieldTarget, MAX_FIELD_TARGET_BYTES } from './hpack/decoder.ts';
import { ENTRY_OVERHEAD_BYTES } from './hpack/dynamic-table.ts';
import { MIN_PSEUDO_ID, PSEUDO } from './hpack/static-table.ts';

/** What a block of fields is. */
export type HeadKind = 'request' | 'response' | 'trailers';

/**
 * The result of a block. `malformed`: the stream must be reset (RFC 9113 §8.1.1). All other refusals are rules of Weir, the
 * same as for HTTP/1.1, and can be answered with a status.
 */
export type HeadResult = 'done' | 'malformed' | RequestHeadRefusal;

/** A list of fields above this size ends the connection, because a few bytes of HPACK can stand for many fields. */
const MAX_DECODED_BYTES: number = 4 * MAX_HEAD_BYTES;
const MAX_AUTHORITY_BYTES = 262;

/** The memory before the fields holds the request line with Host, or the status line. */
const FIELDS_START = 9 * 1024;
const MEMORY_BYTES: number = FIELDS_START + 2 * MAX_HEAD_BYTES + MAX_FIELD_TARGET_BYTES;

// Where the values of pseudo-fields are kept until the head is complete.
const METHOD_AT = 0;
const MAX_METHOD_BYTES = 64;
const AUTHORITY_AT: number = METHOD_AT + MAX_METHOD_BYTES;
const PATH_AT: number = AUTHORITY_AT + MAX_AUTHORITY_BYTES;
const VALUES_BYTES: number = PATH_AT + MAX_TARGET_BYTES;

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
const HTTP: Uint8Array = asciiBytes('http');
const HTTPS: Uint8Array = asciiBytes('https');
const WEBSOCKET: Uint8Array = asciiBytes('websocket');

/** RFC 9113 §8.2.2: a message with one of these fields is malformed. */
const CONNECTION_FIELDS: number =
  (1 << FIELD.connection) |
  (1 << FIELD.keepAlive) |
  (1 << FIELD.proxyConnection) |
  (1 << FIELD.transferEncoding) |
  (1 << FIELD.upgrade);

/**
 * A head or the trailers of HTTP/2, presented as the head of HTTP/1.1 that means the same: a request line, Host, and field
 * lines in one array. So routing, the passes and the writer of heads treat both versions alike, and rules about targets,
 * hosts and lengths are those of the parser of HTTP/1.1. One instance is allocated per worker; a head is valid until the
 * next block of any connection is decoded.
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
  minorVersion = 1;
  /** Whether `:scheme` is `https`. */
  isHttps = false;
  /**
   * Whether the request is an extended CONNECT for a WebSocket (RFC 8441). Its method is presented as GET, as in the
   * request of HTTP/1.1 that upgrades to a WebSocket. DATA in both directions is the other protocol.
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
  readonly #values: Uint8Array = new Uint8Array(VALUES_BYTES);
  #kind: HeadKind = 'request';
  #size = 0;
  #isMalformed = false;
  #refusal: RequestHeadRefusal | undefined;
  #hasRegularField = false;
  /** The pseudo-fields that came, as bits by `id - MIN_PSEUDO_ID`. */
  #pseudo = 0;
  #methodLength = 0;
  #pathLength = 0;
  /** -1 if the request has neither `:authority` nor Host. */
  #authorityLength = -1;
  #hasHost = false;
  #isHttp = false;
  #isWebSocket = false;

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
    this.#pseudo = 0;
    this.#authorityLength = -1;
    this.#hasHost = false;
    this.#isHttp = false;
    this.isHttps = false;
    this.#isWebSocket = false;
    this.startsWebSocket = false;
  }

  /** Forgets the request before, so that a refused request shows nothing of another. The first field is Host. */
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
    this.#methodLength = 0;
    this.#pathLength = 0;
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

  #refuse(refusal: RequestHeadRefusal): void {
    this.#refusal ??= refusal;
  }

  #takePseudo(id: number, start: number, end: number): void {
    const bit = 1 << (id - MIN_PSEUDO_ID);
    const isResponseField = id === PSEUDO.status;
    // RFC 9113 §8.3: pseudo-fields come before all other fields, once each, only those of requests in requests, only those
    // of responses in responses, and none in trailers.
    const isWrong = this.#kind === 'trailers' || isResponseField !== (this.#kind === 'response');
    if (isWrong || this.#hasRegularField || (this.#pseudo & bit) !== 0) this.#isMalformed = true;
    this.#pseudo |= bit;
    switch (id) {
      case PSEUDO.method:
        this.#methodLength = this.#keepValue(METHOD_AT, MAX_METHOD_BYTES, start, end);
        if (this.#methodLength < 0) this.#refuse('method-too-long');
        break;
      case PSEUDO.path:
        this.#pathLength = this.#keepValue(PATH_AT, MAX_TARGET_BYTES, start, end);
        if (this.#pathLength < 0) this.#refuse('target-too-long');
        break;
      case PSEUDO.authority:
        this.#authorityLength = this.#keepValue(AUTHORITY_AT, MAX_AUTHORITY_BYTES, start, end);
        if (this.#authorityLength < 0) this.#refuse('invalid-host');
        break;
      case PSEUDO.scheme:
        this.isHttps = this.#isValue(start, end, HTTPS);
        this.#isHttp = this.#isValue(start, end, HTTP);
        break;
      case PSEUDO.protocol:
        this.#isWebSocket = this.#isValue(start, end, WEBSOCKET);
        break;
      default:
        this.#takeStatus(start, end);
    }
  }

  #takeStatus(start: number, end: number): void {
    const { memory } = this;
    this.status = 0;
    for (let at = start; at < end; at += 1) this.status = this.status * 10 + ((memory[at] as number) - ZERO);
    // RFC 9113 §8.6: HTTP/2 has no 101. RFC 9110 §15: the class of a status code is 1 to 5.
    const isStatus = end - start === 3 && this.status >= 100 && this.status <= 599 && this.status !== 101;
    for (let at = start; at < end; at += 1) {
      if (((memory[at] as number) - ZERO) >>> 0 > 9) this.#isMalformed = true;
    }
    if (!isStatus) this.#isMalformed = true;
  }

  #takeField(id: number, nameEnd: number, valueEnd: number): void {
    const { fields, at } = this;
    this.#hasRegularField = true;
    if (((1 << id) & CONNECTION_FIELDS) !== 0 && id < 32) this.#isMalformed = true;
    // RFC 9113 §8.2.2: TE contains nothing but `trailers`.
    if (id === FIELD.te && !this.#isValue(nameEnd + 2, valueEnd, TRAILERS)) this.#isMalformed = true;
    if (id === FIELD.host && this.#kind === 'request') {
      this.#takeHost(nameEnd + 2, valueEnd);
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

  /** RFC 9113 §8.3.1: a request whose Host differs from `:authority` is malformed. */
  #takeHost(start: number, end: number): void {
    const isAuthority = (this.#pseudo & (1 << (PSEUDO.authority - MIN_PSEUDO_ID))) !== 0;
    if (this.#hasHost) this.#refuse('several-hosts');
    this.#hasHost = true;
    if (!isAuthority) {
      this.#authorityLength = this.#keepValue(AUTHORITY_AT, MAX_AUTHORITY_BYTES, start, end);
      if (this.#authorityLength < 0) this.#refuse('invalid-host');
      return;
    }
    if (end - start !== this.#authorityLength) {
      this.#isMalformed = true;
      return;
    }
    const { memory } = this;
    memory.set(this.#values.subarray(AUTHORITY_AT, AUTHORITY_AT + this.#authorityLength), end);
    if (!isSameHost(memory, start, end, end)) this.#isMalformed = true;
  }

  #finishRequest(endsStream: boolean): HeadResult {
    const has = this.#pseudo;
    if (this.#methodLength > 0) this.methodId = methodIdOf(this.#values, METHOD_AT, METHOD_AT + this.#methodLength);
    const isConnect = this.methodId === METHOD.connect;
    const isExtendedConnect = (has & PROTOCOL_BIT) !== 0;
    // RFC 9113 §8.3.1: a request has `:method`, `:scheme` and `:path`. §8.5: CONNECT has only `:method` and `:authority`.
    const required = isConnect && !isExtendedConnect ? METHOD_BIT | AUTHORITY_BIT : METHOD_BIT | SCHEME_BIT | PATH_BIT;
    if ((has & required) !== required) return 'malformed';
    if (isConnect && !isExtendedConnect && (has & (SCHEME_BIT | PATH_BIT)) !== 0) return 'malformed';
    // RFC 8441 §4: `:protocol` occurs only with CONNECT and `:authority`.
    if (isExtendedConnect && (!isConnect || (has & AUTHORITY_BIT) === 0)) return 'malformed';
    // RFC 9113 §8.3.1: `:path` of http and https is not empty.
    if (this.#methodLength === 0 || (required === REQUEST_BITS && this.#pathLength === 0)) return 'malformed';
    if (this.framing.decideRequest(this.fields, 1) !== undefined) return 'malformed';
    if (!this.#decideBody(endsStream, endsStream ? 'none' : 'chunked')) return 'malformed';
    return this.#refusal ?? this.#refusalOfRequest(isConnect) ?? 'done';
  }

  #refusalOfRequest(isConnect: boolean): RequestHeadRefusal | undefined {
    if (isConnect && !this.#isWebSocket) return 'connect-not-supported';
    if ((this.fields.seen & (1 << FIELD.underscored)) !== 0) return 'ambiguous-field-name';
    if (!this.#isHttp && !this.isHttps) return 'invalid-target';
    if (this.#authorityLength < 0) return 'missing-host';
    const refusal = this.#writeRequestLine();
    if (refusal !== undefined) return refusal;
    // RFC 9113 §8.3.1: `:path` starts with a slash, except for OPTIONS of the whole server.
    if (this.targetForm === 'absolute') return 'invalid-target';
    this.startsWebSocket = isConnect;
    if ((this.fields.repeated & (1 << FIELD.cookie)) !== 0) this.at = joinCookies(this.fields, this.memory, this.at);
    return undefined;
  }

  /** Writes the request line and Host directly before the other fields, and parses both. */
  #writeRequestLine(): RequestHeadRefusal | undefined {
    const values = this.#values;
    const writer = this.#writer;
    const { fields, memory } = this;
    const isWebSocket = this.#isWebSocket;
    const methodLength = isWebSocket ? GET.length : this.#methodLength;
    const authorityLength = this.#authorityLength;
    const length = methodLength + 1 + this.#pathLength + VERSION_AND_HOST.length + authorityLength + CRLF.length;
    const start = FIELDS_START - length;
    writer.at = start;
    if (isWebSocket) writer.bytes(GET);
    else writer.range(values, METHOD_AT, METHOD_AT + methodLength);
    writer.byte(SPACE);
    const first = values[PATH_AT];
    if (first !== SLASH && first !== ASTERISK) return 'invalid-target';
    writer.range(values, PATH_AT, PATH_AT + this.#pathLength);
    const nameStart = writer.at + HOST_NAME_OFFSET;
    writer.bytes(VERSION_AND_HOST);
    const valueStart = writer.at;
    writer.range(values, AUTHORITY_AT, AUTHORITY_AT + authorityLength);
    const valueEnd = writer.at;
    writer.bytes(CRLF);
    this.#line.reset(start);
    const result = this.#line.parse(memory, nameStart);
    if (result !== 'done') return result === 'more' ? 'invalid-request-line' : result;
    // A path with a space and a version behind would end the request line early.
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
    if (this.#pseudo !== STATUS_BIT) return 'malformed';
    const { framing, status } = this;
    // RFC 9113 §8.1: a response that ends the stream is not an interim response.
    if (status < 200 && endsStream) return 'malformed';
    if (framing.decideResponse(this.fields, this) !== undefined) return 'malformed';
    if (framing.kind === 'until-close' || framing.kind === 'chunked') {
      // The end of the stream is the end of the body, so a body of unknown length can be cut off without doubt.
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

  /** Keeps a value of a pseudo-field. Returns its length, or -1 if it is too long. */
  #keepValue(to: number, maxLength: number, start: number, end: number): number {
    if (end - start > maxLength) return -1;
    const { memory } = this;
    for (let at = start; at < end; at += 1) this.#values[to + at - start] = memory[at] as number;
    return end - start;
  }

  #isValue(start: number, end: number, value: Uint8Array): boolean {
    if (end - start !== value.length) return false;
    for (let at = start; at < end; at += 1) if (this.memory[at] !== value[at - start]) return false;
    return true;
  }
}

const bitOf = (id: number): number => 1 << (id - MIN_PSEUDO_ID);
const METHOD_BIT: number = bitOf(PSEUDO.method);
const SCHEME_BIT: number = bitOf(PSEUDO.scheme);
const AUTHORITY_BIT: number = bitOf(PSEUDO.authority);
const PATH_BIT: number = bitOf(PSEUDO.path);
const STATUS_BIT: number = bitOf(PSEUDO.status);
const PROTOCOL_BIT: number = bitOf(PSEUDO.protocol);
const REQUEST_BITS: number = METHOD_BIT | SCHEME_BIT | PATH_BIT;
