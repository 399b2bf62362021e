import { COLON, HEX_VALUE, IS_HOST_BYTE, TOKEN_LOWER } from './byte-classes.ts';

const DOT = 0x2e;
const ZERO = 0x30;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MAX_HOST_BYTES = 255;
const MAX_PORT_DIGITS = 5;
const MAX_PORT = 65_535;

/**
 * Returns where the host of an authority ends (exclusive), or -1 if the host is invalid. The authority is the value of
 * Host or a part of an absolute-form target: `host [":" port]` without userinfo (RFC 9110 §7.2, RFC 3986 §3.2.2). The
 * caller checks the port with `portOf`.
 */
export function hostEndOf(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] === OPEN_BRACKET && start < end) return ipLiteralEnd(bytes, start, end);
  const stop = Math.min(end, start + MAX_HOST_BYTES);
  let at = start;
  while (at < stop && IS_HOST_BYTE[bytes[at] as number] !== 0) at += 1;
  // RFC 9110 §4.2.1: a recipient must refuse an http URI with an empty host.
  return at === start || (at < end && bytes[at] !== COLON) ? -1 : at;
}

/** Returns the end of an IPv6 literal such as `[::1]`. No Service has such a host, so only the bytes are checked. */
function ipLiteralEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start + 1;
  let colons = 0;
  for (; at < end && bytes[at] !== CLOSE_BRACKET; at += 1) {
    const byte = bytes[at] as number;
    if (byte === COLON) colons += 1;
    else if (HEX_VALUE[byte] === 255 && byte !== DOT) return -1;
  }
  if (at === end || colons < 2) return -1;
  at += 1;
  return at < end && bytes[at] !== COLON ? -1 : at;
}

/**
 * Returns the port between the end of the host and the end of the authority: 0 if there is none (`host` or `host:`), and
 * -1 if the port is not a number from 1 to 65535.
 */
export function portOf(bytes: Uint8Array, hostEnd: number, end: number): number {
  if (end - hostEnd <= 1) return 0;
  if (end - hostEnd > MAX_PORT_DIGITS + 1) return -1;
  let port = 0;
  for (let at = hostEnd + 1; at < end; at += 1) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    port = port * 10 + digit;
  }
  return port === 0 || port > MAX_PORT ? -1 : port;
}

/** Reports whether two hosts of equal length are equal, whatever their case. */
export function isSameHost(bytes: Uint8Array, start: number, end: number, otherStart: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    const other = bytes[otherStart + at - start] as number;
    if (byte !== other && (TOKEN_LOWER[byte] !== TOKEN_LOWER[other] || TOKEN_LOWER[byte] === 0)) return false;
  }
  return true;
}
