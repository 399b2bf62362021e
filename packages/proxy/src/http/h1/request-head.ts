import { hostEndOf, isSameHost, portOf } from './authority.ts';
import { BodyFraming } from './body-framing.ts';
import { CR, IN_PATH, IN_QUERY, LF, SPACE, TARGET_CLASS, TOKEN_LOWER } from './byte-classes.ts';
import { FieldLineParser } from './field-lines.ts';
import { FIELD, type HeadFields } from './head-fields.ts';
import { METHOD, methodIdOf } from './methods.ts';
import type { RequestHeadRefusal } from './refusals.ts';

/** The size of a head, from its first byte to the empty line. */
export const MAX_HEAD_BYTES: number = 32 * 1024;
export const MAX_TARGET_BYTES: number = 8 * 1024;
const MAX_METHOD_BYTES = 32;

/**
 * The forms of a request target (RFC 9112 §3.2): `/path?query`, `http://host/path?query` and `*`. The authority-form is
 * only for CONNECT, which is refused.
 */
export type TargetForm = 'origin' | 'absolute' | 'asterisk';

// What the next byte belongs to.
const FIRST_BYTE = 0;
const EMPTY_LINE_LF = 1;
const METHOD_START = 2;
const METHOD_NAME = 3;
const TARGET_START = 4;
const PATH = 5;
const QUERY = 6;
const VERSION = 7;
const FIELD_LINES = 8;

const SLASH = 0x2f;
const QUESTION_MARK = 0x3f;
const ASTERISK = 0x2a;
const DIGIT_ZERO = 0x30;
const VERSION_LINE: Uint8Array = bytesOf('HTTP/1.1\r\n');
const MAJOR_VERSION_AT = 5;
const MINOR_VERSION_AT = 7;
const HTTP_SCHEME: Uint8Array = bytesOf('http://');
const HTTPS_SCHEME: Uint8Array = bytesOf('https://');

/**
 * Parses the head of an HTTP/1.1 or HTTP/1.0 request (RFC 9112 §3 and §5) in place. Each byte is read once, however the
 * bytes arrive. All positions are indexes into the array of the last call; each end is exclusive. One instance is
 * allocated per connection.
 */
export class RequestHeadParser {
  readonly #lines: FieldLineParser = new FieldLineParser();
  readonly fields: HeadFields = this.#lines.fields;
  readonly framing: BodyFraming = new BodyFraming();
  methodStart = 0;
  methodEnd = 0;
  /** The id of the method (`METHOD`). */
  methodId: number = METHOD.other;
  /** 0 for HTTP/1.0, 1 for HTTP/1.1. */
  minorVersion = 1;
  targetForm: TargetForm = 'origin';
  targetStart = 0;
  targetEnd = 0;
  /** The path of the target. It is empty in an absolute-form target such as `http://a?x`, and `*` in asterisk-form. */
  pathStart = 0;
  /** The end of the path: the position of the first `?`, or `targetEnd`. */
  pathEnd = 0;
  /**
   * The host as it was sent, without the port: of the target in absolute-form, otherwise of the Host field. It is empty
   * (start equals end) in an HTTP/1.0 request without a host.
   */
  hostStart = 0;
  hostEnd = 0;
  /** The port behind the host; 0 if there is none. */
  port = 0;
  /** The position of the first byte after the head. */
  bodyStart = 0;
  #state = FIRST_BYTE;
  /** The position of the next byte. */
  #position = 0;
  #versionStart = 0;

  /** Prepares for the next request. Must be called before the first byte of each further request. */
  reset(): void {
    this.#state = FIRST_BYTE;
  }

  /**
   * Parses a request whose first byte is at `start` and of which the bytes up to `end` (exclusive) are there. After
   * `more`, the next call must have the same `start` and all bytes at the same positions, in this array or in a larger
   * one. After a refusal, the connection must be closed: the end of the request is unknown.
   */
  parse(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | RequestHeadRefusal {
    const isFull = end - start >= MAX_HEAD_BYTES;
    const stop = isFull ? start + MAX_HEAD_BYTES : end;
    if (this.#state !== FIELD_LINES) {
      if (this.#state === FIRST_BYTE) this.#position = start;
      const result = this.#parseRequestLine(bytes, stop);
      if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
      this.#state = FIELD_LINES;
      this.#lines.reset(this.#position);
    }
    const result = this.#lines.parse(bytes, stop);
    if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
    this.bodyStart = this.#lines.position;
    return this.#checkHead(bytes) ?? 'done';
  }

  #parseRequestLine(bytes: Uint8Array, end: number): 'more' | 'done' | RequestHeadRefusal {
    let state = this.#state;
    let at = this.#position;
    while (at < end) {
      if (state <= METHOD_START) {
        const byte = bytes[at] as number;
        if (state === EMPTY_LINE_LF && byte !== LF) return 'invalid-line-ending';
        if (state === EMPTY_LINE_LF || (state === FIRST_BYTE && byte === CR)) {
          // RFC 9112 §2.2: a server should ignore at least one empty line before the request line. More are refused.
          state = state === FIRST_BYTE ? EMPTY_LINE_LF : METHOD_START;
          at += 1;
          continue;
        }
        this.methodStart = at;
        state = METHOD_NAME;
      }
      if (state === METHOD_NAME) {
        const maxEnd = this.methodStart + MAX_METHOD_BYTES;
        while (at < end && at <= maxEnd && TOKEN_LOWER[bytes[at] as number] !== 0) at += 1;
        if (at > maxEnd) return 'method-too-long';
        if (at === end) break;
        const refusal = this.#endMethod(bytes, at);
        if (refusal !== undefined) return refusal;
        at += 1;
        state = TARGET_START;
        continue;
      }
      if (state === TARGET_START) {
        this.targetStart = at;
        state = PATH;
      }
      if (state === PATH || state === QUERY) {
        const maxEnd = this.targetStart + MAX_TARGET_BYTES;
        if (state === PATH) {
          while (at < end && at <= maxEnd && ((TARGET_CLASS[bytes[at] as number] as number) & IN_PATH) !== 0) at += 1;
          if (at < end && at <= maxEnd) {
            this.pathEnd = at;
            if (bytes[at] === QUESTION_MARK) state = QUERY;
          }
        }
        if (state === QUERY) {
          while (at < end && at <= maxEnd && ((TARGET_CLASS[bytes[at] as number] as number) & IN_QUERY) !== 0) at += 1;
        }
        if (at > maxEnd) return 'target-too-long';
        if (at === end) break;
        const refusal = this.#endTarget(bytes, at);
        if (refusal !== undefined) return refusal;
        at += 1;
        this.#versionStart = at;
        state = VERSION;
        continue;
      }
      const index = at - this.#versionStart;
      if (index === 0 && end - at >= VERSION_LINE.length && isVersionLine(bytes, at)) {
        this.minorVersion = 1;
        this.#position = at + VERSION_LINE.length;
        return 'done';
      }
      const refusal = this.#checkVersionByte(bytes[at] as number, index);
      if (refusal !== undefined) return refusal;
      at += 1;
      if (index === VERSION_LINE.length - 1) {
        this.#position = at;
        return 'done';
      }
    }
    this.#state = state;
    this.#position = at;
    return 'more';
  }

  #endMethod(bytes: Uint8Array, end: number): RequestHeadRefusal | undefined {
    // RFC 9112 §3: the parts of the request line are separated by one SP. §3.2: nothing may be corrected.
    if (end === this.methodStart || bytes[end] !== SPACE) return 'invalid-method';
    this.methodEnd = end;
    this.methodId = methodIdOf(bytes, this.methodStart, end);
    // RFC 9110 §9.3.6: a server that does not tunnel may refuse CONNECT.
    return this.methodId === METHOD.connect ? 'connect-not-supported' : undefined;
  }

  /** Decides the form of the target (RFC 9112 §3.2). The target ends at `end`, where a space must be. */
  #endTarget(bytes: Uint8Array, end: number): RequestHeadRefusal | undefined {
    const start = this.targetStart;
    if (bytes[end] !== SPACE) {
      // A line that ends behind the target is a request of HTTP/0.9, which RFC 9112 §3 does not have.
      return bytes[end] === CR || bytes[end] === LF ? 'invalid-request-line' : 'invalid-target';
    }
    this.targetEnd = end;
    this.pathStart = start;
    this.hostStart = 0;
    this.hostEnd = 0;
    this.port = 0;
    if (bytes[start] === SLASH) {
      this.targetForm = 'origin';
      return undefined;
    }
    if (bytes[start] === ASTERISK) {
      // RFC 9112 §3.2.4: the asterisk-form is only for OPTIONS.
      if (end - start !== 1 || this.methodId !== METHOD.options) return 'invalid-target';
      this.targetForm = 'asterisk';
      return undefined;
    }
    return this.#endAbsoluteTarget(bytes, end);
  }

  /** RFC 9112 §3.2.2: a server must accept the absolute-form in requests. */
  #endAbsoluteTarget(bytes: Uint8Array, end: number): RequestHeadRefusal | undefined {
    this.targetForm = 'absolute';
    const isHttp = startsWith(bytes, this.targetStart, HTTP_SCHEME);
    if (!isHttp && !startsWith(bytes, this.targetStart, HTTPS_SCHEME)) return 'invalid-target';
    this.hostStart = this.targetStart + (isHttp ? HTTP_SCHEME : HTTPS_SCHEME).length;
    let authorityEnd = this.hostStart;
    while (authorityEnd < end && bytes[authorityEnd] !== SLASH && bytes[authorityEnd] !== QUESTION_MARK) {
      authorityEnd += 1;
    }
    this.pathStart = authorityEnd;
    // RFC 9110 §4.2.4: userinfo in a URI from an untrusted source is an error. `@` is not allowed in a host.
    this.hostEnd = hostEndOf(bytes, this.hostStart, authorityEnd);
    this.port = this.hostEnd === -1 ? -1 : portOf(bytes, this.hostEnd, authorityEnd);
    return this.port === -1 ? 'invalid-target' : undefined;
  }

  #checkVersionByte(byte: number, index: number): RequestHeadRefusal | undefined {
    if (byte === VERSION_LINE[index]) {
      if (index === MINOR_VERSION_AT) this.minorVersion = 1;
      return undefined;
    }
    if (index > MINOR_VERSION_AT) {
      // RFC 9112 §2.2: only CRLF ends a line.
      return byte === LF || VERSION_LINE[index] === LF ? 'invalid-line-ending' : 'invalid-request-line';
    }
    const isDigit = byte >= DIGIT_ZERO && byte <= DIGIT_ZERO + 9;
    if (!isDigit || (index !== MAJOR_VERSION_AT && index !== MINOR_VERSION_AT)) return 'invalid-request-line';
    // RFC 9110 §15.6.6: a server that does not support the version answers with a 505.
    if (index === MAJOR_VERSION_AT || byte !== DIGIT_ZERO) return 'unsupported-version';
    this.minorVersion = 0;
    return undefined;
  }

  #checkHead(bytes: Uint8Array): RequestHeadRefusal | undefined {
    const { fields } = this;
    if ((fields.seen & (1 << FIELD.underscored)) !== 0) return 'ambiguous-field-name';
    // RFC 9112 §3.2: a server must answer a request with several Host fields with a 400.
    if ((fields.repeated & (1 << FIELD.host)) !== 0) return 'several-hosts';
    const hostIndex = fields.indexOf(FIELD.host);
    // RFC 9112 §3.2: a server must answer an HTTP/1.1 request without Host with a 400, whatever the form of its target.
    if (hostIndex === -1 && this.minorVersion === 1) return 'missing-host';
    const refusal = hostIndex === -1 ? undefined : this.#checkHost(bytes, hostIndex);
    return refusal ?? this.framing.decideRequest(fields, this.minorVersion);
  }

  #checkHost(bytes: Uint8Array, index: number): RequestHeadRefusal | undefined {
    const start = this.fields.valueStart[index] as number;
    const end = this.fields.valueEnd[index] as number;
    const hostEnd = hostEndOf(bytes, start, end);
    const port = hostEnd === -1 ? -1 : portOf(bytes, hostEnd, end);
    // RFC 9112 §3.2: a server must answer a request with an invalid Host with a 400.
    if (port === -1) return 'invalid-host';
    if (this.targetForm !== 'absolute') {
      this.hostStart = start;
      this.hostEnd = hostEnd;
      this.port = port;
      return undefined;
    }
    // RFC 9112 §3.2.2: the authority of the target counts, and not the Host field. A client sends the same in both (§3.2),
    // so a difference is an attempt to reach a host that another server would not see.
    const isEqual =
      hostEnd - start === this.hostEnd - this.hostStart &&
      isSameHost(bytes, start, hostEnd, this.hostStart) &&
      (port || this.#defaultPort(bytes)) === (this.port || this.#defaultPort(bytes));
    return isEqual ? undefined : 'host-mismatch';
  }

  #defaultPort(bytes: Uint8Array): number {
    return startsWith(bytes, this.targetStart, HTTP_SCHEME) ? 80 : 443;
  }
}

/** Reports whether the most frequent end of a request line is at `start`. */
function isVersionLine(bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < VERSION_LINE.length; at += 1) if (bytes[start + at] !== VERSION_LINE[at]) return false;
  return true;
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** Reports whether a scheme is at `start`, whatever its case (RFC 3986 §3.1). `scheme` ends with `://`. */
function startsWith(bytes: Uint8Array, start: number, scheme: Uint8Array): boolean {
  for (let at = 0; at < scheme.length; at += 1) {
    const byte = bytes[start + at] as number;
    if (byte !== scheme[at] && TOKEN_LOWER[byte] !== scheme[at]) return false;
  }
  return true;
}
