// Encodes the fields of HTTP/1.1 heads, as the passes leave them, as HTTP/2 fields.
import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD, fieldIdOf } from '../h1/head-fields.ts';
import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import { asciiBytes } from '../passes/byte-writer.ts';
import type { HeadEdit } from '../passes/head-edit.ts';
import type { HpackEncoder } from './hpack/encoder.ts';
import { MIN_PSEUDO_ID } from './hpack/static-table.ts';

const COLON = 0x3a;
const CR = 0x0d;
const LF = 0x0a;
const HOST_LENGTH = 4;
const HTTP: Uint8Array = asciiBytes('http');
const HTTPS: Uint8Array = asciiBytes('https');
const METHOD_NAME: Uint8Array = asciiBytes(':method');
const SCHEME_NAME: Uint8Array = asciiBytes(':scheme');
const AUTHORITY_NAME: Uint8Array = asciiBytes(':authority');
const PATH_NAME: Uint8Array = asciiBytes(':path');
const MAX_PSEUDO_NAME_BYTES: number = AUTHORITY_NAME.length;
const TE_TRAILERS: Uint8Array = asciiBytes('tetrailers');
const TE_LENGTH = 2;

/** Adds a response head after the passes. The memory of the edit must not be full. */
export function encodeResponse(encoder: HpackEncoder, edit: HeadEdit, status: number): void {
  encoder.status(status);
  encodeEdit(encoder, edit);
}

/**
 * Adds a complete HTTP/1.1 request head, as the passes leave it: its target is in origin-form or `*`, and one of its
 * lines is Host. Returns the position after the head.
 */
export function encodeRequest(encoder: HpackEncoder, bytes: Uint8Array, scheme: 'http' | 'https'): number {
  const methodEnd = bytes.indexOf(SPACE);
  const targetEnd = bytes.indexOf(SPACE, methodEnd + 1);
  const fieldsStart = bytes.indexOf(LF, targetEnd) + 1;
  encodePseudo(encoder, METHOD_NAME, bytes, 0, methodEnd);
  const schemeValue = scheme === 'http' ? HTTP : HTTPS;
  encodePseudo(encoder, SCHEME_NAME, schemeValue, 0, schemeValue.length);
  const end = encodeHost(encoder, bytes, fieldsStart);
  encodePseudo(encoder, PATH_NAME, bytes, methodEnd + 1, targetEnd);
  encodeLines(encoder, bytes, { start: fieldsStart, end, kind: 'request' });
  return end + 2;
}

/** Adds `:authority` from the line Host. Returns the position of the empty line after the lines. */
function encodeHost(encoder: HpackEncoder, bytes: Uint8Array, fieldsStart: number): number {
  let at = fieldsStart;
  while (bytes[at] !== CR) {
    const lineEnd = bytes.indexOf(CR, at);
    if (bytes[at + HOST_LENGTH] === COLON && fieldIdOf(bytes, at, at + HOST_LENGTH) === FIELD.host) {
      let valueStart = at + HOST_LENGTH + 1;
      while (bytes[valueStart] === SPACE || bytes[valueStart] === TAB) valueStart += 1;
      encodePseudo(encoder, AUTHORITY_NAME, bytes, valueStart, lineEnd);
    }
    at = lineEnd + 2;
  }
  return at;
}

/** What the fields belong to. Host becomes `:authority`, and TE is kept, only in requests. */
type EncodedKind = 'request' | 'response' | 'trailers';

/** Adds the fields of complete and valid lines `name: value` with CRLF, from `start` to `end` (exclusive). */
export function encodeLines(
  encoder: HpackEncoder,
  bytes: Uint8Array,
  { start, end, kind }: { readonly start: number; readonly end: number; readonly kind: EncodedKind },
): void {
  let at = start;
  while (at < end) {
    const nameStart = at;
    while (bytes[at] !== COLON) at += 1;
    const nameEnd = at;
    at += 1;
    while (bytes[at] === SPACE || bytes[at] === TAB) at += 1;
    const valueStart = at;
    while (bytes[at] !== CR) at += 1;
    const id = fieldIdOf(bytes, nameStart, nameEnd);
    if (isSent(encoder, id, kind)) encoder.field(bytes, nameStart, nameEnd, valueStart, at, id);
    at += 2;
  }
}

/** Adds the kept fields and the appended lines of an edited response head. */
function encodeEdit(encoder: HpackEncoder, edit: HeadEdit): void {
  const { appended, dropped } = edit;
  const { bytes, count, ids, nameStart, nameEnd, valueStart, valueEnd } = edit.fields;
  for (let index = 0; index < count; index += 1) {
    const id = ids[index] as number;
    if (dropped[index] !== 0 || !isSent(encoder, id, 'response')) continue;
    encoder.field(
      bytes,
      nameStart[index] as number,
      nameEnd[index] as number,
      valueStart[index] as number,
      valueEnd[index] as number,
      id,
    );
  }
  encodeLines(encoder, appended.memory, { start: 0, end: appended.at, kind: 'response' });
}

/** The name and the value of the pseudo-field that is being encoded, in one array. */
const pseudoField: Uint8Array = new Uint8Array(MAX_HEAD_BYTES + MAX_PSEUDO_NAME_BYTES);

function encodePseudo(encoder: HpackEncoder, name: Uint8Array, bytes: Uint8Array, start: number, end: number): void {
  const nameLength = name.length;
  for (let at = 0; at < nameLength; at += 1) pseudoField[at] = name[at] as number;
  for (let at = start; at < end; at += 1) pseudoField[nameLength + at - start] = bytes[at] as number;
  encoder.field(pseudoField, 0, nameLength, nameLength, nameLength + end - start, MIN_PSEUDO_ID);
}

/** Whether a field is sent unchanged. TE is added here, with the only value that HTTP/2 allows. */
function isSent(encoder: HpackEncoder, id: number, kind: EncodedKind): boolean {
  switch (id) {
    // RFC 9113 §8.2.2: an endpoint must not send fields that concern only a connection.
    case FIELD.connection:
    case FIELD.keepAlive:
    case FIELD.proxyConnection:
    case FIELD.transferEncoding:
    case FIELD.upgrade:
    case FIELD.http2Settings:
      return false;
    case FIELD.te:
      if (kind === 'request') encoder.field(TE_TRAILERS, 0, TE_LENGTH, TE_LENGTH, TE_TRAILERS.length);
      return false;
    case FIELD.host:
      // RFC 9113 §8.3.1: the host is in `:authority`.
      return kind !== 'request';
    default:
      return true;
  }
}
