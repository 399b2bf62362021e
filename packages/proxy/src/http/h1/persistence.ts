import { SPACE, TAB, TOKEN_LOWER } from './byte-classes.ts';
import { FIELD, type HeadFields } from './head-fields.ts';

const COMMA = 0x2c;
const CLOSE: Uint8Array = bytesOf('close');
const KEEP_ALIVE: Uint8Array = bytesOf('keep-alive');

/**
 * Reports whether the sender of a head allows further messages on the connection after this one (RFC 9112 §9.3).
 * `minorVersion` is 0 for HTTP/1.0 and 1 for HTTP/1.1. The framing may still end the connection
 * (`BodyFraming.endsConnection`).
 */
export function isPersistent(fields: HeadFields, minorVersion: number): boolean {
  const isAlways = minorVersion === 1;
  if ((fields.seen & (1 << FIELD.connection)) === 0) return isAlways;
  if (hasOption(fields, CLOSE)) return false;
  return isAlways || hasOption(fields, KEEP_ALIVE);
}

/** Reports whether a Connection field contains this option, whatever its case (RFC 9110 §7.6.1). */
function hasOption(fields: HeadFields, option: Uint8Array): boolean {
  let index = fields.indexOf(FIELD.connection);
  for (; index !== -1; index = fields.indexOf(FIELD.connection, index + 1)) {
    if (listContains(fields, index, option)) return true;
  }
  return false;
}

/** Reports whether the value of a field is a list with this element (RFC 9110 §5.6.1). */
function listContains(fields: HeadFields, index: number, element: Uint8Array): boolean {
  const { bytes } = fields;
  const end = fields.valueEnd[index] as number;
  let at = fields.valueStart[index] as number;
  while (at < end) {
    while (at < end && isBetweenElements(bytes[at] as number)) at += 1;
    const start = at;
    while (at < end && bytes[at] !== COMMA) at += 1;
    let last = at;
    while (last > start && isBetweenElements(bytes[last - 1] as number)) last -= 1;
    if (last - start === element.length && isEqual(bytes, start, element)) return true;
  }
  return false;
}

function isBetweenElements(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === COMMA;
}

function isEqual(bytes: Uint8Array, start: number, element: Uint8Array): boolean {
  for (let at = 0; at < element.length; at += 1) {
    if (TOKEN_LOWER[bytes[start + at] as number] !== element[at]) return false;
  }
  return true;
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}
