// Writes JSON without `JSON.stringify`, because most texts of an access log are bytes that a client sent. The client
// must neither break a line of the log nor control the terminal that shows the line.
import { asciiBytes, type ByteWriter } from '../http/passes/byte-writer.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_VISIBLE = 0x20;
const DELETE = 0x7f;
const UNICODE_ESCAPE: Uint8Array = asciiBytes('\\u00');
/** U+2026, in place of the bytes after the maximum. */
const ELLIPSIS: Uint8Array = asciiBytes('\\u2026');
const HEX_DIGITS: Uint8Array = asciiBytes('0123456789abcdef');
const NULL: Uint8Array = asciiBytes('null');
const POINT = 0x2e;
const ZERO = 0x30;

/**
 * Writes the bytes from `start` to `end` as a JSON string (RFC 8259 §7) that has only visible ASCII characters. Each
 * byte from 0x80 on is one character from U+0080 to U+00FF, so a character that changes the direction of text cannot
 * occur. Bytes after `maxBytes` are replaced by an ellipsis.
 */
export function writeText(
  out: ByteWriter,
  bytes: Uint8Array,
  { start, end, maxBytes }: { readonly start: number; readonly end: number; readonly maxBytes: number },
): void {
  const last = Math.min(end, start + maxBytes);
  out.byte(QUOTE);
  let plainFrom = start;
  for (let at = start; at < last; at += 1) {
    const byte = bytes[at] as number;
    if (byte >= FIRST_VISIBLE && byte < DELETE && byte !== QUOTE && byte !== BACKSLASH) continue;
    out.range(bytes, plainFrom, at);
    plainFrom = at + 1;
    if (byte === QUOTE || byte === BACKSLASH) {
      out.byte(BACKSLASH);
      out.byte(byte);
    } else {
      out.bytes(UNICODE_ESCAPE);
      out.byte(HEX_DIGITS[byte >> 4] as number);
      out.byte(HEX_DIGITS[byte & 15] as number);
    }
  }
  out.range(bytes, plainFrom, last);
  if (last < end) out.bytes(ELLIPSIS);
  out.byte(QUOTE);
}

/** Writes a duration in milliseconds with three digits after the decimal point, or null if the duration is NaN. */
export function writeMs(out: ByteWriter, ms: number): void {
  if (Number.isNaN(ms)) {
    out.bytes(NULL);
    return;
  }
  const us = Math.round(ms * 1_000);
  out.decimal(Math.floor(us / 1_000));
  out.byte(POINT);
  writeThreeDigits(out, us % 1_000);
}

/** Writes a number from 0 to 999. */
export function writeThreeDigits(out: ByteWriter, value: number): void {
  out.byte(ZERO + Math.floor(value / 100));
  out.byte(ZERO + (Math.floor(value / 10) % 10));
  out.byte(ZERO + (value % 10));
}
