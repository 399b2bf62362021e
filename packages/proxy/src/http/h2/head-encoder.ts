// Encodes fields of HTTP/1.1 heads, as the passes leave them, as fields of HTTP/2.
import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD, fieldIdOf, type HeadFields } from '../h1/head-fields.ts';
import { asciiBytes } from '../passes/byte-writer.ts';
import type { HpackEncoder } from './hpack/encoder.ts';

const COLON = 0x3a;
const CR = 0x0d;
const TE_TRAILERS: Uint8Array = asciiBytes('tetrailers');
const TE_LENGTH = 2;

/** What the fields belong to. Host becomes `:authority`, and TE is kept, only in requests. */
export type EncodedKind = 'request' | 'response' | 'trailers';

/** Adds the fields of a parsed head whose entry in `dropped` is 0. */
export function encodeFields(encoder: HpackEncoder, fields: HeadFields, dropped: Uint8Array, kind: EncodedKind): void {
  const { bytes, count, ids, nameStart, nameEnd, valueStart, valueEnd } = fields;
  for (let index = 0; index < count; index += 1) {
    if (dropped[index] !== 0 || !isSent(encoder, ids[index] as number, kind)) continue;
    encoder.field(
      bytes,
      nameStart[index] as number,
      nameEnd[index] as number,
      valueStart[index] as number,
      valueEnd[index] as number,
    );
  }
}

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
    if (isSent(encoder, fieldIdOf(bytes, nameStart, nameEnd), kind)) {
      encoder.field(bytes, nameStart, nameEnd, valueStart, at);
    }
    at += 2;
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
