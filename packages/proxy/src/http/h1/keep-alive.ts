import { SPACE, TAB, TOKEN_LOWER } from './byte-classes.ts';
import { FIELD, type HeadFields } from './head-fields.ts';

const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const TIMEOUT: Uint8Array = Uint8Array.from('timeout=', (char) => char.charCodeAt(0));

/**
 * Returns how many seconds the sender of a head keeps the connection without a further message: the smallest `timeout` of
 * Keep-Alive (RFC 2068 §19.7.1.1), such as 5 for `Keep-Alive: timeout=5, max=100`. Returns Infinity if there is no valid
 * `timeout`.
 */
export function keepAliveSeconds(fields: HeadFields): number {
  let seconds = Number.POSITIVE_INFINITY;
  if ((fields.seen & (1 << FIELD.keepAlive)) === 0) return seconds;
  const { bytes, valueEnd, valueStart } = fields;
  let index = fields.indexOf(FIELD.keepAlive);
  for (; index !== -1; index = fields.indexOf(FIELD.keepAlive, index + 1)) {
    const end = valueEnd[index] as number;
    for (let at = valueStart[index] as number; at < end; at += 1) {
      const start = at;
      while (at < end && bytes[at] !== COMMA) at += 1;
      seconds = Math.min(seconds, timeoutIn(bytes, start, at));
    }
  }
  return seconds;
}

/** Returns the seconds of one parameter. Returns Infinity for other parameters and invalid values. */
function timeoutIn(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  let end = to;
  while (at < end && isSpace(bytes[at] as number)) at += 1;
  while (at < end && isSpace(bytes[end - 1] as number)) end -= 1;
  if (end - at <= TIMEOUT.length) return Number.POSITIVE_INFINITY;
  for (const expected of TIMEOUT) {
    const byte = bytes[at] as number;
    if (byte !== expected && TOKEN_LOWER[byte] !== expected) return Number.POSITIVE_INFINITY;
    at += 1;
  }
  let seconds = 0;
  for (; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (byte < ZERO || byte > NINE) return Number.POSITIVE_INFINITY;
    seconds = seconds * 10 + byte - ZERO;
  }
  return seconds;
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === TAB;
}
