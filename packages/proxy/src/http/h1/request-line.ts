import { hostEndOf, portOf } from './authority.ts';
import { CR, IN_PATH, IN_QUERY, LF, SPACE, TARGET_CLASS, TOKEN_LOWER } from './byte-classes.ts';
import { METHOD, methodIdOf } from './methods.ts';
import type { RequestHeadRefusal } from './refusals.ts';

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
 * The parts of a request line, as positions in the array that was parsed last. Each end is exclusive. For a target in
 * absolute-form, also its host and port.
 */
export interface RequestLine {
  methodStart: number;
  methodEnd: number;
  /** The id of the method (`METHOD`). */
  methodId: number;
  targetForm: TargetForm;
  targetStart: number;
  targetEnd: number;
  /** The path of the target. It is empty in an absolute-form target such as `http://a?x`, and `*` in asterisk-form. */
  pathStart: number;
  /** The end of the path: the position of the first `?`, or `targetEnd`. */
  pathEnd: number;
  /** The host as it was sent, without the port. It is empty (start equals end) if the request has none. */
  hostStart: number;
  hostEnd: number;
  /** The port after the host; 0 if there is none. */
  port: number;
  /** 0 for HTTP/1.0, 1 for HTTP/1.1. */
  minorVersion: number;
}

/** Parses the request line (RFC 9112 §3) of a head into a `RequestLine`. */
export class RequestLineParser {
  /** The position of the next byte. After `done`, the position after the request line. */
  position = 0;
  readonly #line: RequestLine;
  #state = FIRST_BYTE;
  #versionStart = 0;

  constructor(line: RequestLine) {
    this.#line = line;
  }

  /** Prepares for a request line that begins at `start`. */
  reset(start: number): void {
    this.position = start;
    this.#state = FIRST_BYTE;
  }

  /** Parses the bytes from `position` to `end` (exclusive). Must not be called again after `done` or a refusal. */
  parse(bytes: Uint8Array, end: number): 'more' | 'done' | RequestHeadRefusal {
    while (this.position < end) {
      const result = this.#takePart(bytes, end);
      if (result !== undefined) return result;
    }
    return 'more';
  }

  #takePart(bytes: Uint8Array, end: number): 'done' | RequestHeadRefusal | undefined {
    switch (this.#state) {
      case METHOD_NAME:
        return this.#takeMethod(bytes, end);
      case TARGET_START:
      case PATH:
      case QUERY:
        return this.#takeTarget(bytes, end);
      case VERSION:
        return this.#takeVersion(bytes, end);
      default:
        return this.#takeStart(bytes[this.position] as number);
    }
  }

  /** RFC 9112 §2.2: a server should ignore at least one empty line before the request line. More are refused. */
  #takeStart(byte: number): RequestHeadRefusal | undefined {
    if (this.#state === EMPTY_LINE_LF) {
      if (byte !== LF) return 'invalid-line-ending';
      this.#state = METHOD_START;
      this.position += 1;
    } else if (this.#state === FIRST_BYTE && byte === CR) {
      this.#state = EMPTY_LINE_LF;
      this.position += 1;
    } else {
      this.#state = METHOD_NAME;
      this.#line.methodStart = this.position;
    }
    return undefined;
  }

  #takeMethod(bytes: Uint8Array, end: number): RequestHeadRefusal | undefined {
    const line = this.#line;
    const start = line.methodStart;
    const maxEnd = start + MAX_METHOD_BYTES;
    let at = this.position;
    while (at < end && at <= maxEnd && TOKEN_LOWER[bytes[at] as number] !== 0) at += 1;
    this.position = at;
    if (at > maxEnd) return 'method-too-long';
    if (at === end) return undefined;
    // RFC 9112 §3: the parts of the request line are separated by one SP. §3.2: a server should not correct a line.
    if (at === start || bytes[at] !== SPACE) return 'invalid-method';
    line.methodEnd = at;
    line.methodId = methodIdOf(bytes, start, at);
    this.position = at + 1;
    this.#state = TARGET_START;
    // RFC 9110 §9.3.6: a server that does not tunnel may refuse CONNECT.
    return line.methodId === METHOD.connect ? 'connect-not-supported' : undefined;
  }

  #takeTarget(bytes: Uint8Array, end: number): RequestHeadRefusal | undefined {
    const line = this.#line;
    let at = this.position;
    if (this.#state === TARGET_START) {
      line.targetStart = at;
      this.#state = PATH;
    }
    const maxEnd = line.targetStart + MAX_TARGET_BYTES;
    const stop = end <= maxEnd ? end : maxEnd + 1;
    if (this.#state === PATH) {
      while (at < stop && ((TARGET_CLASS[bytes[at] as number] as number) & IN_PATH) !== 0) at += 1;
      line.pathEnd = at;
      if (at < stop && bytes[at] === QUESTION_MARK) this.#state = QUERY;
    }
    if (this.#state === QUERY) {
      while (at < stop && ((TARGET_CLASS[bytes[at] as number] as number) & IN_QUERY) !== 0) at += 1;
    }
    this.position = at;
    if (at > maxEnd) return 'target-too-long';
    if (at === end) return undefined;
    // A line that ends after the target is an HTTP/0.9 request, which RFC 9112 §3 does not have.
    if (bytes[at] === CR || bytes[at] === LF) return 'invalid-request-line';
    if (bytes[at] !== SPACE) return 'invalid-target';
    line.targetEnd = at;
    this.position = at + 1;
    this.#versionStart = at + 1;
    this.#state = VERSION;
    return this.#checkTarget(bytes);
  }

  /** Decides the form of the target (RFC 9112 §3.2). */
  #checkTarget(bytes: Uint8Array): RequestHeadRefusal | undefined {
    const line = this.#line;
    const start = line.targetStart;
    line.pathStart = start;
    line.hostStart = 0;
    line.hostEnd = 0;
    line.port = 0;
    if (bytes[start] === SLASH) {
      line.targetForm = 'origin';
      return undefined;
    }
    if (bytes[start] !== ASTERISK) return this.#checkAbsoluteTarget(bytes);
    // RFC 9112 §3.2.4: the asterisk-form is only for OPTIONS.
    if (line.targetEnd - start !== 1 || line.methodId !== METHOD.options) return 'invalid-target';
    line.targetForm = 'asterisk';
    return undefined;
  }

  /** RFC 9112 §3.2.2: a server must accept the absolute-form in requests. */
  #checkAbsoluteTarget(bytes: Uint8Array): RequestHeadRefusal | undefined {
    const line = this.#line;
    line.targetForm = 'absolute';
    const isHttp = hasScheme(bytes, line.targetStart, HTTP_SCHEME);
    if (!isHttp && !hasScheme(bytes, line.targetStart, HTTPS_SCHEME)) return 'invalid-target';
    line.hostStart = line.targetStart + (isHttp ? HTTP_SCHEME : HTTPS_SCHEME).length;
    let authorityEnd = line.hostStart;
    while (authorityEnd < line.pathEnd && bytes[authorityEnd] !== SLASH) authorityEnd += 1;
    line.pathStart = authorityEnd;
    // RFC 9110 §4.2.4: userinfo in a URI from an untrusted source is an error. `@` is not allowed in a host.
    line.hostEnd = hostEndOf(bytes, line.hostStart, authorityEnd);
    line.port = line.hostEnd === -1 ? -1 : portOf(bytes, line.hostEnd, authorityEnd);
    return line.port === -1 ? 'invalid-target' : undefined;
  }

  #takeVersion(bytes: Uint8Array, end: number): 'done' | RequestHeadRefusal | undefined {
    let at = this.position;
    if (at === this.#versionStart && end - at >= VERSION_LINE.length && isVersionLine(bytes, at)) {
      this.#line.minorVersion = 1;
      this.position = at + VERSION_LINE.length;
      return 'done';
    }
    for (; at < end; at += 1) {
      const index = at - this.#versionStart;
      const refusal = this.#checkVersionByte(bytes[at] as number, index);
      if (refusal !== undefined) return refusal;
      if (index < VERSION_LINE.length - 1) continue;
      this.position = at + 1;
      return 'done';
    }
    this.position = at;
    return undefined;
  }

  #checkVersionByte(byte: number, index: number): RequestHeadRefusal | undefined {
    if (byte === VERSION_LINE[index]) {
      if (index === MINOR_VERSION_AT) this.#line.minorVersion = 1;
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
    this.#line.minorVersion = 0;
    return undefined;
  }
}

/** Reports whether the usual end of a request line, `HTTP/1.1` with CRLF, is at `start`. */
function isVersionLine(bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < VERSION_LINE.length; at += 1) if (bytes[start + at] !== VERSION_LINE[at]) return false;
  return true;
}

/** Returns the default port of an absolute-form target that begins at `start`. */
export function defaultPortOf(bytes: Uint8Array, start: number): number {
  return hasScheme(bytes, start, HTTP_SCHEME) ? 80 : 443;
}

/** Reports whether a scheme is at `start`, whatever its case (RFC 3986 §3.1). `scheme` ends with `://`. */
function hasScheme(bytes: Uint8Array, start: number, scheme: Uint8Array): boolean {
  for (let at = 0; at < scheme.length; at += 1) {
    const byte = bytes[start + at] as number;
    if (byte !== scheme[at] && TOKEN_LOWER[byte] !== scheme[at]) return false;
  }
  return true;
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}
