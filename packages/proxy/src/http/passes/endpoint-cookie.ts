// Finds the cookie that names the endpoint of a client, and hides the cookie from the endpoint.
import type { EndpointStats } from '@weir/model/data-plane';
import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';

export interface EndpointCookie {
  /** The name of the cookie. Names are case-sensitive (RFC 6265 §5.4). */
  readonly name: Uint8Array;
  /** Returns the endpoint that the value from `start` to `end` (exclusive) names, or undefined if there is none. */
  endpointOf(bytes: Uint8Array, start: number, end: number): EndpointStats | undefined;
}

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const COOKIE_PREFIX: Uint8Array = asciiBytes('Cookie: ');
const SEPARATOR: Uint8Array = asciiBytes('; ');
const CRLF: Uint8Array = asciiBytes('\r\n');

/**
 * Removes all cookies with the name from the request. Returns the endpoint of the first cookie that names one. A client
 * may send several cookies with one name, because they may have other paths or domains (RFC 6265 §5.4).
 */
export function takeEndpointCookie(edit: HeadEdit, cookie: EndpointCookie): EndpointStats | undefined {
  const first = edit.firstOf(FIELD.cookie);
  if (first < 0) return undefined;
  const { ids, count } = edit.fields;
  let endpoint: EndpointStats | undefined;
  for (let index = first; index < count; index += 1) {
    if (ids[index] !== FIELD.cookie || !hasCookie(edit, index, cookie.name)) continue;
    endpoint ??= endpointIn(edit, index, cookie);
    edit.dropped[index] = 1;
    appendOthers(edit, index, cookie.name);
  }
  return endpoint;
}

function hasCookie({ fields }: HeadEdit, index: number, name: Uint8Array): boolean {
  const { bytes } = fields;
  const end = fields.valueEnd[index] as number;
  for (let at = fields.valueStart[index] as number; at < end; at = pairEnd(bytes, at, end) + 1) {
    at = skipBlanks(bytes, at, end);
    if (end - at > name.length && isNamed(bytes, at, name)) return true;
  }
  return false;
}

function endpointIn({ fields }: HeadEdit, index: number, cookie: EndpointCookie): EndpointStats | undefined {
  const { bytes } = fields;
  const end = fields.valueEnd[index] as number;
  for (let at = fields.valueStart[index] as number; at < end; ) {
    const start = skipBlanks(bytes, at, end);
    at = pairEnd(bytes, start, end);
    const valueStart = start + cookie.name.length + 1;
    if (valueStart <= at && isNamed(bytes, start, cookie.name)) {
      const endpoint = cookie.endpointOf(bytes, valueStart, trimBlanks(bytes, valueStart, at));
      if (endpoint !== undefined) return endpoint;
    }
    at += 1;
  }
  return undefined;
}

/** Appends the field without the cookies with this name, unless the field has no other cookie. */
function appendOthers({ fields, appended }: HeadEdit, index: number, name: Uint8Array): void {
  const { bytes } = fields;
  const end = fields.valueEnd[index] as number;
  let isFirst = true;
  for (let at = fields.valueStart[index] as number; at < end; ) {
    const start = skipBlanks(bytes, at, end);
    at = pairEnd(bytes, start, end);
    if (at > start && !(at - start > name.length && isNamed(bytes, start, name))) {
      appended.bytes(isFirst ? COOKIE_PREFIX : SEPARATOR);
      appended.range(bytes, start, trimBlanks(bytes, start, at));
      isFirst = false;
    }
    at += 1;
  }
  if (!isFirst) appended.bytes(CRLF);
}

/** Whether the cookie that begins at `start` has this name. The caller checks that the cookie is longer than the name. */
function isNamed(bytes: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let at = 0; at < name.length; at += 1) if (bytes[start + at] !== name[at]) return false;
  return bytes[start + name.length] === EQUALS;
}

function pairEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== SEMICOLON) at += 1;
  return at;
}

function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank(bytes[at])) at += 1;
  return at;
}

function trimBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && isBlank(bytes[at - 1])) at -= 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}
