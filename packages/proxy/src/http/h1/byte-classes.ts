/** Tables that classify single bytes of HTTP/1.1 heads and bodies. Each table has 256 entries, indexed by the byte. */

export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;

const ALPHA = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const DIGIT = '0123456789';

/**
 * The lower-case form of each byte that is allowed in a token (RFC 9110 §5.6.2), and 0 for all other bytes. So one
 * look-up both checks a byte of a name and prepares the comparison of names.
 */
export const TOKEN_LOWER: Uint8Array = new Uint8Array(256);
for (const char of `${ALPHA}${DIGIT}!#$%&'*+-.^_\`|~`)
  TOKEN_LOWER[char.charCodeAt(0)] = char.toLowerCase().charCodeAt(0);

/**
 * 1 for each byte that is allowed in a field value or a reason phrase: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5, RFC
 * 9112 §4). 0 for CR, LF, NUL, DEL and all other controls.
 */
export const IS_VALUE_BYTE: Uint8Array = new Uint8Array(256).fill(1, SPACE).fill(0, 0x7f, 0x80);
IS_VALUE_BYTE[TAB] = 1;

/** The value of each hexadecimal digit, and 255 for all other bytes. */
export const HEX_VALUE: Uint8Array = new Uint8Array(256).fill(255);
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16);
  HEX_VALUE[digit.charCodeAt(0)] = value;
  HEX_VALUE[digit.toUpperCase().charCodeAt(0)] = value;
}
