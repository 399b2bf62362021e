// Encodes fields of HTTP/1.1 heads, as the passes leave them, as fields of HTTP/2.
import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD, fieldIdOf } from '../h1/head-fields.ts';
import { METHOD } from '../h1/methods.ts';
import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import { MAX_TARGET_BYTES } from '../h1/request-line.ts';
import { asciiBytes } from '../passes/byte-writer.ts';
import type { HeadEdit } from '../passes/head-edit.ts';
import type { RequestHead } from '../passes/request-context.ts';
import type { HpackEncoder } from './hpack/encoder.ts';
import { MIN_PSEUDO_ID } from './hpack/static-table.ts';

const SLASH = 0x2f;
const COLON = 0x3a;
const CR = 0x0d;
const ASTERISK: Uint8Array = asciiBytes('*');
const HTTP: Uint8Array = asciiBytes('http');
const HTTPS: Uint8Array = asciiBytes('https');
const METHOD_NAME: Uint8Array = asciiBytes(':method');
const SCHEME_NAME: Uint8Array = asciiBytes(':scheme');
const AUTHORITY_NAME: Uint8Array = asciiBytes(':authority');
const PATH_NAME: Uint8Array = asciiBytes(':path');
const MAX_PSEUDO_NAME_BYTES: number = AUTHORITY_NAME.length;
const TE_TRAILERS: Uint8Array = asciiBytes('tetrailers');
const TE_LENGTH = 2;
const pathWithSlash: Uint8Array = new Uint8Array(MAX_TARGET_BYTES + 1);

/** Adds a response head after the passes. The memory of the edit must not be full. */
export function encodeResponse(encoder: HpackEncoder, edit: HeadEdit, status: number): void {
  encoder.status(status);
  encodeEdit(encoder, edit, 'response');
}

/** Adds a request head after the passes. The head may come from HTTP/1.1 or from HTTP/2. */
export function encodeRequest(encoder: HpackEncoder, edit: HeadEdit, head: RequestHead, isHttps: boolean): void {
  const { fields } = edit;
  const { bytes } = fields;
  encodePseudo(encoder, METHOD_NAME, bytes, head.methodStart, head.methodEnd);
  encodePseudo(encoder, SCHEME_NAME, isHttps ? HTTPS : HTTP, 0, isHttps ? HTTPS.length : HTTP.length);
  const host = fields.indexOf(FIELD.host);
  if (edit.host !== undefined) encodePseudo(encoder, AUTHORITY_NAME, edit.host, edit.hostStart, edit.hostEnd);
  else if (host >= 0) {
    encodePseudo(encoder, AUTHORITY_NAME, bytes, fields.valueStart[host] as number, fields.valueEnd[host] as number);
  }
  if (edit.target !== undefined) encodePseudo(encoder, PATH_NAME, edit.target, 0, edit.target.length);
  else if (bytes[head.pathStart] === SLASH || head.targetForm === 'asterisk') {
    encodePseudo(encoder, PATH_NAME, bytes, head.pathStart, head.targetEnd);
  } else encodeEmptyPath(encoder, head, bytes);
  encodeEdit(encoder, edit, 'request');
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

/** Adds the kept fields and the appended lines of an edited head. */
function encodeEdit(encoder: HpackEncoder, edit: HeadEdit, kind: EncodedKind): void {
  const { appended, dropped } = edit;
  const { bytes, count, ids, nameStart, nameEnd, valueStart, valueEnd } = edit.fields;
  for (let index = 0; index < count; index += 1) {
    const id = ids[index] as number;
    if (dropped[index] !== 0 || !isSent(encoder, id, kind)) continue;
    encoder.field(
      bytes,
      nameStart[index] as number,
      nameEnd[index] as number,
      valueStart[index] as number,
      valueEnd[index] as number,
      id,
    );
  }
  encodeLines(encoder, appended.memory, { start: 0, end: appended.at, kind });
}

/** The name and the value of the pseudo-field that is being encoded, in one array. */
const pseudoField: Uint8Array = new Uint8Array(MAX_HEAD_BYTES + MAX_PSEUDO_NAME_BYTES);

function encodePseudo(encoder: HpackEncoder, name: Uint8Array, bytes: Uint8Array, start: number, end: number): void {
  const nameLength = name.length;
  for (let at = 0; at < nameLength; at += 1) pseudoField[at] = name[at] as number;
  for (let at = start; at < end; at += 1) pseudoField[nameLength + at - start] = bytes[at] as number;
  encoder.field(pseudoField, 0, nameLength, nameLength, nameLength + end - start, MIN_PSEUDO_ID);
}

/** Adds `:path` of a target in absolute-form without a path, which may have a query. */
function encodeEmptyPath(encoder: HpackEncoder, head: RequestHead, bytes: Uint8Array): void {
  const { pathStart, targetEnd } = head;
  // RFC 9113 §8.3.1: OPTIONS without a path has the path `*`, and every other method a slash.
  if (head.methodId === METHOD.options && pathStart === targetEnd) encodePseudo(encoder, PATH_NAME, ASTERISK, 0, 1);
  else {
    const length = targetEnd - pathStart;
    pathWithSlash[0] = SLASH;
    for (let at = 0; at < length; at += 1) pathWithSlash[at + 1] = bytes[pathStart + at] as number;
    encodePseudo(encoder, PATH_NAME, pathWithSlash, 0, length + 1);
  }
}

/** Whether HTTP/2 has a field. Sends TE in the only form that HTTP/2 has. */
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
