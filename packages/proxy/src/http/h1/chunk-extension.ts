import { CR, IS_VALUE_BYTE, SPACE, TAB, TOKEN_LOWER } from './byte-classes.ts';

// The parts of a chunk extension (RFC 9112 §7.1.1): *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ).
/** The state after the last digit of a chunk size. */
export const BEFORE_EXTENSION = 0;
const SPACE_BEFORE_SEMICOLON = 1;
const NAME_START = 2;
const NAME = 3;
const AFTER_NAME = 4;
const VALUE_START = 5;
const TOKEN_VALUE = 6;
const QUOTED = 7;
const QUOTED_PAIR = 8;
const AFTER_QUOTED = 9;

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Returns the state after one more byte of a chunk extension, or -1 if the byte is not allowed. CR ends the extensions.
 * The grammar is checked although extensions are dropped: a quoted string that is not closed could continue after the
 * line for another recipient, and spaces before CRLF are not part of an extension.
 */
export function nextExtensionState(state: number, byte: number): number {
  const isToken = TOKEN_LOWER[byte] !== 0;
  const isSpace = byte === SPACE || byte === TAB;
  switch (state) {
    case BEFORE_EXTENSION:
    case SPACE_BEFORE_SEMICOLON:
      if (byte === SEMICOLON) return NAME_START;
      return isSpace ? SPACE_BEFORE_SEMICOLON : -1;
    case NAME_START:
      if (isToken) return NAME;
      return isSpace ? NAME_START : -1;
    case NAME:
      if (isToken) return NAME;
      if (byte === CR) return BEFORE_EXTENSION;
      return isSpace ? AFTER_NAME : afterName(byte);
    case AFTER_NAME:
      return isSpace ? AFTER_NAME : afterName(byte);
    case VALUE_START:
      if (isSpace) return VALUE_START;
      if (byte === QUOTE) return QUOTED;
      return isToken ? TOKEN_VALUE : -1;
    case TOKEN_VALUE:
      return isToken ? TOKEN_VALUE : afterValue(byte, isSpace);
    case QUOTED:
      if (byte === QUOTE) return AFTER_QUOTED;
      if (byte === BACKSLASH) return QUOTED_PAIR;
      return IS_VALUE_BYTE[byte] === 1 ? QUOTED : -1;
    case QUOTED_PAIR:
      return IS_VALUE_BYTE[byte] === 1 ? QUOTED : -1;
    default:
      return afterValue(byte, isSpace);
  }
}

function afterName(byte: number): number {
  if (byte === EQUALS) return VALUE_START;
  return byte === SEMICOLON ? NAME_START : -1;
}

function afterValue(byte: number, isSpace: boolean): number {
  if (byte === CR) return BEFORE_EXTENSION;
  if (byte === SEMICOLON) return NAME_START;
  return isSpace ? SPACE_BEFORE_SEMICOLON : -1;
}
