import { COLON, CR, IS_VALUE_BYTE, LF, SPACE, TAB, TOKEN_LOWER } from './byte-classes.ts';
import { fieldIdOf, HeadFields, MAX_FIELDS } from './head-fields.ts';
import type { FieldRefusal } from './refusals.ts';

/** The length of one field line without CRLF. */
export const MAX_FIELD_BYTES: number = 16 * 1024;

// What the next byte belongs to. Each state follows the state above it; LINE_LF leads back to LINE_START.
const LINE_START = 0;
const NAME = 1;
const BEFORE_VALUE = 2;
const VALUE = 3;
const LINE_LF = 4;
/** The LF of the empty line after the last field. */
const LAST_LF = 5;

/**
 * Parses the field lines of a head or of a trailer section, up to and including the empty line (RFC 9112 §5). Each byte
 * is read once, however the bytes arrive.
 */
export class FieldLineParser {
  readonly fields: HeadFields = new HeadFields();
  /** The position of the next byte. After `done`, the position after the empty line. */
  position = 0;
  #state = LINE_START;

  /** Prepares for field lines that begin at `start`. */
  reset(start: number): void {
    this.fields.count = 0;
    this.fields.seen = 0;
    this.fields.repeated = 0;
    this.position = start;
    this.#state = LINE_START;
  }

  /**
   * Parses the bytes from `position` to `end` (exclusive). After `more`, the next call must have all bytes at the same
   * positions, in this array or in a larger one. Must not be called again after any other result.
   *
   * This is one function over local variables, because it reads most bytes of all heads: with a method per part of a
   * line, a head takes 40 % longer.
   */
  parse(bytes: Uint8Array, end: number): 'more' | 'done' | FieldRefusal {
    const { fields } = this;
    const { ids, nameStart, nameEnd, valueStart, valueEnd } = fields;
    fields.bytes = bytes;
    let { count } = fields;
    let state = this.#state;
    let at = this.position;
    // In the middle of a line, the start of the line is the start of its name.
    let lineStart = count < MAX_FIELDS ? (nameStart[count] as number) : at;
    while (at < end) {
      if (state === LINE_START) {
        const byte = bytes[at] as number;
        if (byte === CR) {
          at += 1;
          state = LAST_LF;
          continue;
        }
        if (TOKEN_LOWER[byte] === 0) return refusalAtLineStart(byte, count);
        if (count === MAX_FIELDS) return 'too-many-fields';
        lineStart = at;
        nameStart[count] = at;
        state = NAME;
      }
      if (state === LAST_LF) {
        if (bytes[at] !== LF) return 'invalid-line-ending';
        this.position = at + 1;
        return 'done';
      }
      const maxLineEnd = lineStart + MAX_FIELD_BYTES;
      const stop = end <= maxLineEnd ? end : maxLineEnd + 1;
      if (state === NAME) {
        while (at < stop && TOKEN_LOWER[bytes[at] as number] !== 0) at += 1;
        if (at < stop) {
          // RFC 9112 §5.1: no whitespace is allowed between the name and the colon; a server must answer with a 400.
          if (bytes[at] !== COLON) return refusalInName(bytes[at] as number);
          nameEnd[count] = at;
          const id = fieldIdOf(bytes, lineStart, at);
          ids[count] = id;
          if (id < 32) {
            fields.repeated |= fields.seen & (1 << id);
            fields.seen |= 1 << id;
          }
          at += 1;
          state = BEFORE_VALUE;
        }
      }
      if (state === BEFORE_VALUE) {
        while (at < stop && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1;
        if (at < stop) {
          valueStart[count] = at;
          state = VALUE;
        }
      }
      if (state === VALUE) {
        while (at < stop && IS_VALUE_BYTE[bytes[at] as number] !== 0) at += 1;
        if (at < stop) {
          // RFC 9110 §5.5: a message with CR, LF, NUL or another control in a value is refused.
          if (bytes[at] !== CR) return bytes[at] === LF ? 'invalid-line-ending' : 'invalid-field-value';
          valueEnd[count] = endWithoutWhitespace(bytes, valueStart[count] as number, at);
          at += 1;
          state = LINE_LF;
        }
      }
      if (at > maxLineEnd && state !== LINE_LF) return 'field-too-large';
      if (state === LINE_LF && at < end) {
        // RFC 9112 §2.2: a recipient of a bare CR must refuse the message or replace the CR by SP.
        if (bytes[at] !== LF) return 'invalid-line-ending';
        at += 1;
        count += 1;
        fields.count = count;
        state = LINE_START;
      }
    }
    this.#state = state;
    this.position = at;
    return 'more';
  }
}

function refusalAtLineStart(byte: number, count: number): FieldRefusal {
  // RFC 9112 §5.2: a server must refuse obs-fold. §2.2: it must refuse whitespace between the start line and the first
  // field.
  if (byte === SPACE || byte === TAB) return count === 0 ? 'invalid-field-name' : 'folded-field';
  return refusalInName(byte);
}

function refusalInName(byte: number): FieldRefusal {
  // RFC 9112 §2.2 allows recipients to accept a bare LF as a line terminator. Recipients that do not accept it would see
  // another message, so a bare LF is refused.
  return byte === LF ? 'invalid-line-ending' : 'invalid-field-name';
}

/** Returns where the value from `start` to `end` ends without its trailing whitespace (RFC 9112 §5.1). */
function endWithoutWhitespace(bytes: Uint8Array, start: number, end: number): number {
  let last = end;
  while (last > start && (bytes[last - 1] === SPACE || bytes[last - 1] === TAB)) last -= 1;
  return last;
}
