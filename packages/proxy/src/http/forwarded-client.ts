import { isIP } from 'node:net';
import type { NetworkSet } from '@weir/model/data-plane';
import { SPACE, TAB } from './h1/byte-classes.ts';
import { FIELD, type HeadFields } from './h1/head-fields.ts';

/**
 * How many proxies in front of Weir are skipped. Bounds the cost of a head in which a client has written many addresses of
 * trusted proxies.
 */
const MAX_FORWARDED_HOPS = 32;
/** The longest text of an IPv6 address, in brackets and with a port. */
const MAX_HOP_CHARS = 45 + '[]:65535'.length;
const COMMA = 0x2c;

/**
 * Returns the address of the client for whom a trusted peer has sent a request: the last address in X-Forwarded-For
 * that is not in `trusted`, because each trusted proxy has appended the address of its own peer. If the field names
 * only trusted proxies, or the value before them is not an address, returns the first of these proxies. Returns
 * undefined if the field is missing, or if its last value is not an address.
 */
export function forwardedClientOf(fields: HeadFields, trusted: NetworkSet): string | undefined {
  const { bytes, ids, count, valueStart, valueEnd } = fields;
  let client: string | undefined;
  let hops = 0;
  for (let index = count - 1; index >= 0; index -= 1) {
    if (ids[index] !== FIELD.xForwardedFor) continue;
    const start = valueStart[index] as number;
    let end = valueEnd[index] as number;
    while (end > start) {
      const comma = bytes.lastIndexOf(COMMA, end - 1);
      const from = comma < start ? start : comma + 1;
      const address = addressIn(bytes, from, end);
      if (address === undefined) return client;
      client = address;
      hops += 1;
      if (hops === MAX_FORWARDED_HOPS || !trusted.contains(address)) return client;
      end = from - 1;
    }
  }
  return client;
}

/** Returns the address in an element of X-Forwarded-For, without a port. Undefined if the element is not an address. */
function addressIn(bytes: Uint8Array, start: number, end: number): string | undefined {
  let first = start;
  let last = end;
  while (first < last && isWhitespace(bytes[first])) first += 1;
  while (last > first && isWhitespace(bytes[last - 1])) last -= 1;
  if (last - first > MAX_HOP_CHARS) return undefined;
  const text = String.fromCharCode(...bytes.subarray(first, last));
  const address = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([^:]*):\d{1,5}$/.exec(text)?.[1] ?? text;
  // An address with a zone means nothing on this host.
  return isIP(address) === 0 || address.includes('%') ? undefined : address;
}

function isWhitespace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}
