import type { REDIRECT_STATUSES } from '@weir/model/data-plane';
import { asciiBytes, type ByteWriter } from './byte-writer.ts';

/**
 * The status codes of redirects. With 307 and 308 the client repeats the method and the body, with 303 the client sends
 * a GET. 301 and 308 may be cached.
 */
export type RedirectStatus = (typeof REDIRECT_STATUSES)[number];

/** The parts of a redirect that do not depend on the location. */
export interface RedirectAnswer {
  readonly status: RedirectStatus;
  /** The current time in the format of the field Date. */
  readonly dateText: Uint8Array;
  readonly closes: boolean;
  /** 0 if the client sent HTTP/1.0, 1 for HTTP/1.1. */
  readonly clientMinorVersion: number;
}

export interface Redirect extends RedirectAnswer {
  readonly scheme: 'http' | 'https';
  /** The host without a port; an IPv6 address in brackets. */
  readonly host: Uint8Array;
  /** The port, which is left out of Location if it is the scheme's default. */
  readonly port: number;
  /** The array that contains the path and query, from `targetStart` to `targetEnd` (exclusive). */
  readonly target: Uint8Array;
  readonly targetStart: number;
  readonly targetEnd: number;
}

const HEAD_STARTS: Readonly<Record<RedirectStatus, Uint8Array>> = {
  301: headStart('301 Moved Permanently'),
  302: headStart('302 Found'),
  303: headStart('303 See Other'),
  307: headStart('307 Temporary Redirect'),
  308: headStart('308 Permanent Redirect'),
};
const SCHEMES: Readonly<Record<Redirect['scheme'], Uint8Array>> = {
  http: asciiBytes('http://'),
  https: asciiBytes('https://'),
};
const DEFAULT_PORTS: Readonly<Record<Redirect['scheme'], number>> = { http: 80, https: 443 };
const DATE_PREFIX: Uint8Array = asciiBytes('\r\nDate: ');
const HEAD_END: Uint8Array = asciiBytes('\r\n\r\n');
const CLOSE_HEAD_END: Uint8Array = asciiBytes('\r\nConnection: close\r\n\r\n');
const KEEP_ALIVE_HEAD_END: Uint8Array = asciiBytes('\r\nConnection: keep-alive\r\n\r\n');
const UPPER_HEX: Uint8Array = asciiBytes('0123456789ABCDEF');
const COLON = 0x3a;
const SLASH = 0x2f;
const PERCENT = 0x25;

/**
 * Writes a redirect without a body and returns the position after the answer, or -1 if the memory of the writer is too
 * small. The answer is the same for GET and HEAD.
 */
export function writeRedirect(writer: ByteWriter, redirect: Redirect): number {
  const { scheme, host, port, target, targetStart, targetEnd } = redirect;
  writer.bytes(HEAD_STARTS[redirect.status]);
  writer.bytes(SCHEMES[scheme]);
  writeVisible(writer, host, { start: 0, end: host.length });
  if (port !== DEFAULT_PORTS[scheme]) {
    writer.byte(COLON);
    writer.decimal(port);
  }
  // Without the slash, a target could become a part of the host: `shop.example` and `.attacker.example`.
  if (target[targetStart] !== SLASH || targetStart === targetEnd) writer.byte(SLASH);
  writeVisible(writer, target, { start: targetStart, end: targetEnd });
  return writeEnd(writer, redirect);
}

/** Writes a redirect to a complete URI, as returned by `locationFor`. Returns the same as `writeRedirect`. */
export function writeRedirectTo(writer: ByteWriter, location: string, answer: RedirectAnswer): number {
  const bytes = Buffer.from(location, 'latin1');
  writer.bytes(HEAD_STARTS[answer.status]);
  writeVisible(writer, bytes, { start: 0, end: bytes.length });
  return writeEnd(writer, answer);
}

function writeEnd(writer: ByteWriter, { dateText, closes, clientMinorVersion }: RedirectAnswer): number {
  writer.bytes(DATE_PREFIX);
  writer.bytes(dateText);
  if (closes) writer.bytes(CLOSE_HEAD_END);
  // RFC 9112 §9.3: an HTTP/1.0 connection stays open only if the answer says so.
  else writer.bytes(clientMinorVersion === 0 ? KEEP_ALIVE_HEAD_END : HEAD_END);
  return writer.at;
}

function headStart(status: string): Uint8Array {
  return asciiBytes(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nLocation: `);
}

/** Writes bytes of a URI. Percent-encodes all bytes but visible ASCII, so that no byte can end the line. */
function writeVisible(
  writer: ByteWriter,
  bytes: Uint8Array,
  { start, end }: { readonly start: number; readonly end: number },
): void {
  let copied = start;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (byte > 0x20 && byte < 0x7f) continue;
    writer.range(bytes, copied, at);
    writer.byte(PERCENT);
    writer.byte(UPPER_HEX[byte >> 4] as number);
    writer.byte(UPPER_HEX[byte & 15] as number);
    copied = at + 1;
  }
  writer.range(bytes, copied, end);
}
