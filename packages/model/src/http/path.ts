// The normal form of paths. Routes are matched with the normal form, and the endpoint gets the normal form, so an endpoint never sees a
// path other than the path that was matched. If no route of a host uses the path, the endpoint gets the path as the client sent it.

/** A path, and the query of the same text. */
export interface PathAndQuery {
  readonly path: string;
  /** Empty, or the query with its `?`, exactly as the client sent it. */
  readonly query: string;
  /** `path` followed by `query`. The same string as the input if nothing had to change. */
  readonly text: string;
}

export type PathRefusal =
  | 'invalid-character'
  | 'invalid-percent-encoding'
  | 'encoded-control'
  | 'encoded-slash'
  | 'backslash'
  | 'fragment'
  | 'dot-segment-with-parameter'
  | 'above-root';

/**
 * Returns the normal form of a text that begins with `/`, such as `/a/b?c=d`.
 *
 * - RFC 3986 §6.2.2.2: a percent-encoding of an unreserved character is decoded, once.
 * - RFC 3986 §6.2.2.1: the hex digits of all other percent-encodings become upper case.
 * - RFC 3986 §6.2.2.3: dot segments are resolved, also if dots are percent-encoded; a path that climbs above the root is refused.
 * - RFC 3986 §3.3: a dot segment with a parameter (`..;x`) is refused, because servlet containers resolve it like `..`.
 * - RFC 3986 §3.3: other parameters (`;x`) and empty segments (`//`) are kept. An empty segment equals no other segment.
 * - RFC 3986 §2.2: an encoded slash or backslash is refused, because endpoints do not agree on whether it separates segments.
 * - RFC 3986 §7.3: NUL and other control characters are refused, also if they are percent-encoded.
 * - RFC 3986 §3.3: a character that paths must encode is refused, except `[]^|`, which browsers do not encode.
 * - RFC 9112 §3.2: a fragment is refused, because a request target has none.
 * - RFC 3986 §3.4: the query is not changed. It may have every visible character, because browsers encode few of them there.
 *
 * Costs one scan without an allocation if nothing has to change and the text has no query.
 */
export function parsePathAndQuery(text: string): PathAndQuery | PathRefusal {
  const scanned = scanPath(text);
  if (typeof scanned === 'string') return scanned;
  const isNormal = scanned >= 0;
  const end = isNormal ? scanned : ~scanned;
  if (end < text.length) {
    const refusal = queryRefusalFor(text, end + 1);
    if (refusal !== undefined) return refusal;
  }
  const path = end === text.length ? text : text.slice(0, end);
  const query = end === text.length ? '' : text.slice(end);
  if (isNormal) return { path, query, text };

  const decoded = path.replace(PERCENT_ENCODING, decodeUnreserved);
  if (DOT_SEGMENT_WITH_PARAMETER.test(decoded)) return 'dot-segment-with-parameter';
  const resolved = resolveDotSegments(decoded);
  if (resolved === undefined) return 'above-root';
  return resolved === path ? { path, query, text } : { path: resolved, query, text: resolved + query };
}

/** Returns the path and the query of a text that begins with `/`, as they are. */
export function splitPathAndQuery(text: string): PathAndQuery {
  const end = text.indexOf('?');
  return end < 0 ? { path: text, query: '', text } : { path: text.slice(0, end), query: text.slice(end), text };
}

const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * Checks each character of the path. Returns the index at which the path ends, as a bitwise complement (a negative number) if the path may
 * not be in its normal form.
 */
function scanPath(text: string): number | PathRefusal {
  let isNormal = true;
  let at = 0;
  loop: for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? (PATH_CHARACTERS[code] as number) : FORBIDDEN;
    switch (kind) {
      case ORDINARY:
        break;
      case DOT_CHARACTER:
        if (text.charCodeAt(at - 1) === SLASH && mayBeDotSegment(text, at)) isNormal = false;
        break;
      case PERCENT: {
        const value = hexValue(text, at + 1) * 16 + hexValue(text, at + 2);
        if (!(value >= 0)) return 'invalid-percent-encoding';
        // RFC 3986 §7.3: NUL and other controls may end or split the path in an endpoint.
        if (value < 0x20 || value === 0x7f) return 'encoded-control';
        // RFC 3986 §2.2: data that is equal to a delimiter stays encoded, and many endpoints decode it before they split the path.
        if (value === SLASH || value === 0x5c) return 'encoded-slash';
        // RFC 3986 §6.2.2.1 and §6.2.2.2.
        if (isUnreserved(value) || hasLowerCaseHex(text, at)) isNormal = false;
        at += 2;
        break;
      }
      case QUESTION_MARK:
        break loop;
      case NUMBER_SIGN:
        return 'fragment';
      case BACKSLASH:
        // RFC 3986 §3.3: no character of a path. Browsers and several endpoints read it as a slash.
        return 'backslash';
      default:
        return 'invalid-character';
    }
  }
  return isNormal ? at : ~at;
}

/** Whether a segment that begins with a dot, at `start`, may be a dot segment. Needs no exact answer for segments with `;` or `%`. */
function mayBeDotSegment(text: string, start: number): boolean {
  const at = text.charCodeAt(start + 1) === DOT ? start + 2 : start + 1;
  return at >= text.length || '/?;%'.includes(text.charAt(at));
}

function queryRefusalFor(text: string, from: number): PathRefusal | undefined {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x23) return 'fragment';
    if (code < 0x21 || code > 0x7e) return 'invalid-character';
  }
  return undefined;
}

const PERCENT_ENCODING = /%[0-9a-f]{2}/gi;
/** A dot segment with a parameter, after decoding. The encoded semicolon counts, because some endpoints decode the path first. */
const DOT_SEGMENT_WITH_PARAMETER = /\/\.\.?(?:;|%3B)/;

function decodeUnreserved(encoding: string): string {
  const value = Number.parseInt(encoding.slice(1), 16);
  return isUnreserved(value) ? String.fromCharCode(value) : encoding.toUpperCase();
}

/** Returns the path without dot segments (RFC 3986 §5.2.4); undefined if the path climbs above the root. */
function resolveDotSegments(path: string): string | undefined {
  const resolved: string[] = [];
  const segments = path.split('/');
  for (let at = 1; at < segments.length; at += 1) {
    const segment = segments[at] as string;
    if (segment !== '.' && segment !== '..') {
      resolved.push(segment);
      continue;
    }
    // RFC 3986 §5.4.2 would stay at the root. A client has no reason to climb above the root, but an attacker has.
    if (segment === '..' && resolved.pop() === undefined) return undefined;
    if (at === segments.length - 1) resolved.push('');
  }
  return `/${resolved.join('/')}`;
}

/** Returns the value of a hex digit; NaN if there is no hex digit at this index. */
function hexValue(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

function hasLowerCaseHex(text: string, at: number): boolean {
  return text.charCodeAt(at + 1) >= 0x61 || text.charCodeAt(at + 2) >= 0x61;
}

function isUnreserved(code: number): boolean {
  return code < 128 && UNRESERVED[code] === 1;
}

const FORBIDDEN = 0;
const ORDINARY = 1;
const DOT_CHARACTER = 2;
const PERCENT = 3;
const QUESTION_MARK = 4;
const NUMBER_SIGN = 5;
const BACKSLASH = 6;

/** Whether a character is unreserved (RFC 3986 §2.3), by code. */
const UNRESERVED: Uint8Array = new Uint8Array(128);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~') {
  UNRESERVED[character.charCodeAt(0)] = 1;
}

/** What `scanPath` does with a character, by code. */
const PATH_CHARACTERS: Uint8Array = Uint8Array.from(UNRESERVED);
// RFC 3986 §3.3: `pchar` and the slash, and four characters that browsers send.
for (const character of "/!$&'()*+,;=:@[]^|") PATH_CHARACTERS[character.charCodeAt(0)] = ORDINARY;
PATH_CHARACTERS[DOT] = DOT_CHARACTER;
PATH_CHARACTERS[0x25] = PERCENT;
PATH_CHARACTERS[0x3f] = QUESTION_MARK;
PATH_CHARACTERS[0x23] = NUMBER_SIGN;
PATH_CHARACTERS[0x5c] = BACKSLASH;
