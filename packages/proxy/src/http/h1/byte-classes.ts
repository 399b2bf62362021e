/** Tables that classify single bytes of HTTP/1.1 heads and bodies. Each table has 256 entries, indexed by the byte. */

export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;
export const COLON = 0x3a;

const ALPHA_DIGIT = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

/**
 * The lower-case form of each byte that is allowed in a token (RFC 9110 §5.6.2), and 0 for all other bytes. So one
 * look-up both checks a byte of a name and prepares the comparison of names.
 */
export const TOKEN_LOWER: Uint8Array = new Uint8Array(256);
for (const char of `${ALPHA_DIGIT}!#$%&'*+-.^_\`|~`) {
  TOKEN_LOWER[char.charCodeAt(0)] = char.toLowerCase().charCodeAt(0);
}

/**
 * 1 for each byte that is allowed in a field value or a reason phrase: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5, RFC
 * 9112 §4). 0 for CR, LF, NUL, DEL and all other controls.
 */
export const IS_VALUE_BYTE: Uint8Array = new Uint8Array(256).fill(1, SPACE).fill(0, 0x7f, 0x80);
IS_VALUE_BYTE[TAB] = 1;

/** The flags of `TARGET_CLASS`. */
export const IN_PATH = 1;
export const IN_QUERY = 2;

/** The bytes that RFC 3986 §3.3 allows in a path, and those of an IP literal in the authority. */
const PATH_CHARS = `${ALPHA_DIGIT}-._~!$&'()*+,;=:@%/[]`;

/**
 * Which bytes are allowed in a request target, as flags: before the first `?` (`IN_PATH`), and after it (`IN_QUERY`).
 * Besides the bytes that RFC 3986 allows, the table contains those that browsers send without encoding (WHATWG URL,
 * path and query percent-encode sets) and that delimit nothing: `^` and `|`, and in the query also `` ?{}`\ ``. No
 * control, space, `"`, `<`, `>` or byte above 0x7e is allowed, and no `#`: RFC 9112 §3.2 has no fragment in any form of
 * a target. A backslash in a path is refused, because some endpoints take it for a slash.
 */
export const TARGET_CLASS: Uint8Array = new Uint8Array(256);
for (const char of `${PATH_CHARS}^|`) TARGET_CLASS[char.charCodeAt(0)] = IN_PATH | IN_QUERY;
for (const char of '?{}`\\') TARGET_CLASS[char.charCodeAt(0)] = IN_QUERY;

/**
 * 1 for each byte that is allowed in a host name or an IPv4 address. Underscores occur in real host names. The sub-delims
 * and percent-encodings of RFC 3986 §3.2.2 occur in no host that a Service can have, and are refused.
 */
export const IS_HOST_BYTE: Uint8Array = new Uint8Array(256);
for (const char of `${ALPHA_DIGIT}-._`) IS_HOST_BYTE[char.charCodeAt(0)] = 1;

/** The value of each hexadecimal digit, and 255 for all other bytes. */
export const HEX_VALUE: Uint8Array = new Uint8Array(256).fill(255);
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16);
  HEX_VALUE[digit.charCodeAt(0)] = value;
  HEX_VALUE[digit.toUpperCase().charCodeAt(0)] = value;
}
