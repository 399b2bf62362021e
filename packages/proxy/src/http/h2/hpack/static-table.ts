// The static table of HPACK (RFC 7541 Appendix A), and the ids of the names in HTTP/2 heads.
import { FIELD, fieldIdOf } from '../../h1/head-fields.ts';

/** The ids of pseudo-fields (RFC 9113 §8.3). They continue the ids of `FIELD`. */
export const PSEUDO = {
  method: 64,
  scheme: 65,
  authority: 66,
  path: 67,
  status: 68,
  /** RFC 8441 §4. */
  protocol: 69,
  unknown: 70,
} as const;

/** The smallest id of a pseudo-field. */
export const MIN_PSEUDO_ID: number = PSEUDO.method;

const PSEUDO_NAMES: readonly string[] = [':method', ':scheme', ':authority', ':path', ':status', ':protocol'];
const COLON = 0x3a;

/** Names and values of the entries 1 to 61. */
const ENTRIES: readonly (readonly [name: string, value?: string])[] = [
  [':authority'],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset'],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language'],
  ['accept-ranges'],
  ['accept'],
  ['access-control-allow-origin'],
  ['age'],
  ['allow'],
  ['authorization'],
  ['cache-control'],
  ['content-disposition'],
  ['content-encoding'],
  ['content-language'],
  ['content-length'],
  ['content-location'],
  ['content-range'],
  ['content-type'],
  ['cookie'],
  ['date'],
  ['etag'],
  ['expect'],
  ['expires'],
  ['from'],
  ['host'],
  ['if-match'],
  ['if-modified-since'],
  ['if-none-match'],
  ['if-range'],
  ['if-unmodified-since'],
  ['last-modified'],
  ['link'],
  ['location'],
  ['max-forwards'],
  ['proxy-authenticate'],
  ['proxy-authorization'],
  ['range'],
  ['referer'],
  ['refresh'],
  ['retry-after'],
  ['server'],
  ['set-cookie'],
  ['strict-transport-security'],
  ['transfer-encoding'],
  ['user-agent'],
  ['vary'],
  ['via'],
  ['www-authenticate'],
];

export const STATIC_COUNT: number = ENTRIES.length;
/** All names and values without separators. An entry is `name`, directly followed by `value`. */
export const STATIC_BYTES: Uint8Array = new TextEncoder().encode(ENTRIES.flat().join(''));
/** Where the name and the value of each entry start and end, by index; index 0 is unused. */
export const STATIC_NAME_START: Uint16Array = new Uint16Array(STATIC_COUNT + 1);
export const STATIC_VALUE_START: Uint16Array = new Uint16Array(STATIC_COUNT + 1);
export const STATIC_VALUE_END: Uint16Array = new Uint16Array(STATIC_COUNT + 1);
/** The ids of the names, by index. */
export const STATIC_IDS: Uint8Array = new Uint8Array(STATIC_COUNT + 1);

for (let index = 1, at = 0; index <= STATIC_COUNT; index += 1) {
  const [name, value = ''] = ENTRIES[index - 1] as readonly [string, string?];
  STATIC_NAME_START[index] = at;
  STATIC_VALUE_START[index] = at + name.length;
  STATIC_VALUE_END[index] = at + name.length + value.length;
  STATIC_IDS[index] = nameIdOf(STATIC_BYTES, at, at + name.length);
  at += name.length + value.length;
}

/** Returns the id of a name (`FIELD` or `PSEUDO`) from `start` to `end` (exclusive). */
export function nameIdOf(bytes: Uint8Array, start: number, end: number): number {
  if (start === end || bytes[start] !== COLON) return fieldIdOf(bytes, start, end);
  for (const [index, name] of PSEUDO_NAMES.entries()) {
    if (name.length !== end - start) continue;
    let at = 1;
    while (at < name.length && bytes[start + at] === name.charCodeAt(at)) at += 1;
    if (at === name.length) return MIN_PSEUDO_ID + index;
  }
  return PSEUDO.unknown;
}

/** Whether fields with this id are secrets, which no table may contain (RFC 7541 §7.1.3). */
export function isSecret(id: number): boolean {
  return id === FIELD.authorization || id === FIELD.proxyAuthorization || id === FIELD.cookie || id === FIELD.setCookie;
}
