// The fields that concern only one connection (RFC 9110 §7.6.1). The request passes and the response passes begin here.
import { SPACE, TAB, TOKEN_LOWER } from '../h1/byte-classes.ts';
import { FIELD, fieldIdOf } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import { type HeadEdit, isSameName } from './head-edit.ts';

/** The options of Connection that the proxy itself understands, as bits. */
export const CONNECTION_OPTION = { close: 1, keepAlive: 2, upgrade: 4 } as const;

/**
 * At most this many options may name other fields. The proxy compares each such option with every field of the head, so
 * a long list would cost the proxy much more CPU than it costs a client to send. Larger heads are refused.
 */
const MAX_NAMED_FIELDS = 32;
const COMMA = 0x2c;
const CLOSE: Uint8Array = asciiBytes('close');

/**
 * Drops the fields that concern only the connection on which they arrived, and the fields that Connection names. An
 * option of Connection removes only fields whose names Weir does not know (`FIELD.other`): each known field is either
 * always dropped or never. So a client cannot remove Host, Cookie, Authorization, X-Forwarded-For and other fields that
 * routing or endpoints rely on. Returns the received options as bits of `CONNECTION_OPTION`.
 */
export function dropHopByHop(edit: HeadEdit): number {
  edit.drop(FIELD.keepAlive);
  edit.drop(FIELD.proxyConnection);
  edit.drop(FIELD.te);
  edit.drop(FIELD.upgrade);
  edit.drop(FIELD.http2Settings);
  // RFC 9110 §11.7: these fields are for a proxy that the client has chosen. Weir is not such a proxy.
  edit.drop(FIELD.proxyAuthenticate);
  edit.drop(FIELD.proxyAuthorization);
  const first = edit.firstOf(FIELD.connection);
  if (first < 0) return 0;
  edit.drop(FIELD.connection);
  const { bytes, ids, count, valueStart, valueEnd } = edit.fields;
  let options = 0;
  let namedFields = 0;
  for (let index = first; index < count; index += 1) {
    if (ids[index] !== FIELD.connection) continue;
    const listEnd = valueEnd[index] as number;
    for (let at = valueStart[index] as number; at < listEnd; at += 1) {
      const start = skipWhitespace(bytes, at, listEnd);
      at = indexOfComma(bytes, start, listEnd);
      const end = trimWhitespace(bytes, start, at);
      if (start === end) continue;
      const id = fieldIdOf(bytes, start, end);
      if (id === FIELD.upgrade) options |= CONNECTION_OPTION.upgrade;
      else if (id === FIELD.keepAlive) options |= CONNECTION_OPTION.keepAlive;
      else if (isToken(bytes, { start, end, token: CLOSE })) options |= CONNECTION_OPTION.close;
      else if (id === FIELD.other) {
        namedFields += 1;
        if (namedFields > MAX_NAMED_FIELDS) {
          edit.appended.at = -1;
          return options;
        }
        dropNamedFields(edit, start, end);
      }
    }
  }
  return options;
}

/** Whether a list field with this id contains `token`, which is in lower case, as a member without parameters. */
export function hasListMember(edit: HeadEdit, id: number, token: Uint8Array): boolean {
  const first = edit.firstOf(id);
  if (first < 0) return false;
  const { bytes, ids, count, valueStart, valueEnd } = edit.fields;
  for (let index = first; index < count; index += 1) {
    if (ids[index] !== id) continue;
    const listEnd = valueEnd[index] as number;
    for (let at = valueStart[index] as number; at < listEnd; at += 1) {
      const start = skipWhitespace(bytes, at, listEnd);
      at = indexOfComma(bytes, start, listEnd);
      if (isToken(bytes, { start, end: trimWhitespace(bytes, start, at), token })) return true;
    }
  }
  return false;
}

/** Whether the value of a received field is `token`, which is in lower case. */
export function isValue(
  { fields: { bytes, valueStart, valueEnd } }: HeadEdit,
  index: number,
  token: Uint8Array,
): boolean {
  return isToken(bytes, { start: valueStart[index] as number, end: valueEnd[index] as number, token });
}

/** Drops the unknown fields whose name is the bytes from `start` to `end` of the head. */
function dropNamedFields(edit: HeadEdit, start: number, end: number): void {
  const { bytes, count, nameStart, nameEnd } = edit.fields;
  const length = end - start;
  for (let index = 0; index < count; index += 1) {
    const from = nameStart[index] as number;
    if ((nameEnd[index] as number) - from !== length) continue;
    let at = 0;
    while (at < length && TOKEN_LOWER[bytes[from + at] as number] === TOKEN_LOWER[bytes[start + at] as number]) at += 1;
    if (at === length) edit.dropped[index] = 1;
  }
}

function isToken(
  bytes: Uint8Array,
  { start, end, token }: { readonly start: number; readonly end: number; readonly token: Uint8Array },
): boolean {
  return end - start === token.length && isSameName(bytes, start, token);
}

function skipWhitespace(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1;
  return at;
}

function trimWhitespace(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && (bytes[at - 1] === SPACE || bytes[at - 1] === TAB)) at -= 1;
  return at;
}

function indexOfComma(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== COMMA) at += 1;
  return at;
}
