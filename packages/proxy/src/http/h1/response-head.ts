import { BodyFraming, type ResponseContext } from './body-framing.ts';
import { CR, IS_VALUE_BYTE, LF, SPACE } from './byte-classes.ts';
import { FieldLineParser } from './field-lines.ts';
import type { HeadFields } from './head-fields.ts';
import { METHOD } from './methods.ts';
import type { ResponseHeadRefusal } from './refusals.ts';
import { MAX_HEAD_BYTES } from './request-head.ts';

// What the next byte belongs to.
const FIRST_BYTE = 0;
const STATUS_LINE = 1;
const REASON = 2;
const STATUS_LINE_LF = 3;
const FIELD_LINES = 4;

const DIGIT_ZERO = 0x30;
/** The bytes of a status line before the reason phrase. `?` stands for a digit that `#takeByte` checks. */
const STATUS_LINE_PATTERN: Uint8Array = Uint8Array.from('HTTP/1.? ???', (char) => char.charCodeAt(0));
const MINOR_VERSION_AT = 7;
const STATUS_AT = 9;

/**
 * Parses the head of an HTTP/1.1 or HTTP/1.0 response (RFC 9112 §4 and §5) in place, as `RequestHeadParser` parses
 * requests. An interim response (1xx) is a response of its own: after it, the caller calls `reset` with the same method
 * and parses the next head. A 101 is no different for the parser; afterwards the bytes belong to another protocol.
 */
export class ResponseHeadParser implements ResponseContext {
  readonly #lines: FieldLineParser = new FieldLineParser();
  readonly fields: HeadFields = this.#lines.fields;
  readonly framing: BodyFraming = new BodyFraming();
  /** The method of the request that is answered (`METHOD`). */
  requestMethod: number = METHOD.other;
  readonly majorVersion: number = 1;
  /** 0 for HTTP/1.0, 1 for HTTP/1.1. */
  minorVersion = 1;
  /** The status code, from 100 to 599. */
  status = 0;
  /** The reason phrase, which may be empty. */
  reasonStart = 0;
  reasonEnd = 0;
  /** The position of the first byte after the head. */
  bodyStart = 0;
  #state = FIRST_BYTE;
  /** The position of the next byte. */
  #position = 0;

  /** Prepares for the next response, which answers a request with this method (`METHOD`). */
  reset(requestMethod: number): void {
    this.requestMethod = requestMethod;
    this.#state = FIRST_BYTE;
  }

  /**
   * Parses a response whose first byte is at `start` and of which the bytes up to `end` (exclusive) are there. After
   * `more`, the next call must have the same `start` and all bytes at the same positions, in this array or in a larger
   * one. After a refusal, the connection must be closed.
   */
  parse(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | ResponseHeadRefusal {
    const isFull = end - start >= MAX_HEAD_BYTES;
    const stop = isFull ? start + MAX_HEAD_BYTES : end;
    if (this.#state !== FIELD_LINES) {
      const result = this.#parseStatusLine(bytes, start, stop);
      if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
      this.#state = FIELD_LINES;
      this.#lines.reset(this.#position);
    }
    const result = this.#lines.parse(bytes, stop);
    if (result !== 'done') return result === 'more' && isFull ? 'head-too-large' : result;
    this.bodyStart = this.#lines.position;
    return this.framing.decideResponse(this.fields, this) ?? 'done';
  }

  #parseStatusLine(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | ResponseHeadRefusal {
    let state = this.#state;
    let at = state === FIRST_BYTE ? start : this.#position;
    if (state === FIRST_BYTE) {
      this.status = 0;
      state = STATUS_LINE;
    }
    while (at < end) {
      const byte = bytes[at] as number;
      if (state === STATUS_LINE) {
        const index = at - start;
        if (index < STATUS_LINE_PATTERN.length) {
          if (!this.#takeByte(byte, index)) return 'invalid-status-line';
          at += 1;
          continue;
        }
        // RFC 9110 §15: the class of a status code is 1 to 5.
        if (this.status < 100 || this.status > 599) return 'invalid-status-line';
        // RFC 9112 §4: a space follows the status even if there is no reason phrase. Some endpoints leave the space out.
        if (byte !== SPACE && byte !== CR) return byte === LF ? 'invalid-line-ending' : 'invalid-status-line';
        if (byte === SPACE) at += 1;
        this.reasonStart = at;
        state = REASON;
        continue;
      }
      if (state === REASON) {
        while (at < end && IS_VALUE_BYTE[bytes[at] as number] !== 0) at += 1;
        if (at === end) break;
        // RFC 9112 §4: a reason phrase contains only HTAB, SP, VCHAR and obs-text. §2.2: only CRLF ends a line.
        if (bytes[at] !== CR) return bytes[at] === LF ? 'invalid-line-ending' : 'invalid-status-line';
        this.reasonEnd = at;
        at += 1;
        state = STATUS_LINE_LF;
        continue;
      }
      if (byte !== LF) return 'invalid-line-ending';
      this.#position = at + 1;
      return 'done';
    }
    this.#state = state;
    this.#position = at;
    return 'more';
  }

  /** Takes one byte before the reason phrase. Returns false if the byte is wrong. */
  #takeByte(byte: number, index: number): boolean {
    if (index < STATUS_AT && index !== MINOR_VERSION_AT) return byte === STATUS_LINE_PATTERN[index];
    const digit = byte - DIGIT_ZERO;
    if (digit < 0 || digit > 9) return false;
    if (index !== MINOR_VERSION_AT) {
      this.status = this.status * 10 + digit;
      return true;
    }
    // Weir sends HTTP/1.1 requests, so an endpoint must not answer with a later version (RFC 9110 §6.2).
    this.minorVersion = digit;
    return digit <= 1;
  }
}
