import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD, type HeadFields } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import { isGrpcRequest } from './grpc-status.ts';

/** The formats of the answers that Weir itself makes. `grpc`: see `grpc-status.ts`. */
export type AnswerFormat = 'text' | 'json' | 'html' | 'grpc';

/** At most this many bytes of Accept are read. Media types after them count as not accepted. */
const MAX_ACCEPT_BYTES = 1_024;

interface MediaType {
  readonly format: AnswerFormat;
  readonly type: Uint8Array;
  readonly typeRange: Uint8Array;
}

/** The formats in the order of preference if the client accepts several equally. */
const MEDIA_TYPES: readonly MediaType[] = [
  { format: 'text', type: asciiBytes('text/plain'), typeRange: asciiBytes('text/*') },
  { format: 'json', type: asciiBytes('application/json'), typeRange: asciiBytes('application/*') },
  { format: 'html', type: asciiBytes('text/html'), typeRange: asciiBytes('text/*') },
];
const ANY_TYPE: Uint8Array = asciiBytes('*/*');
const PRECISION = { none: 0, anyType: 1, typeRange: 2, type: 3 } as const;
const MAX_WEIGHT = 1_000;

/** What Accept says about each entry of `MEDIA_TYPES`, by index. Valid during one call of `answerFormatFor`. */
const precisions: Uint8Array = new Uint8Array(MEDIA_TYPES.length);
const weights: Uint16Array = new Uint16Array(MEDIA_TYPES.length);
const positions: Uint16Array = new Uint16Array(MEDIA_TYPES.length);

const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const DOT = 0x2e;
const ZERO = 0x30;
const LOWER_Q = 0x71;
const LOWER_CASE_BIT = 0x20;

/**
 * Returns `grpc` for a gRPC request, otherwise the format that the client prefers (RFC 9110 §12.5.1): the highest
 * weight, then the type that Accept names more precisely, then the type that Accept names first. Returns `text` without
 * Accept, and also if the client accepts none of the formats, because RFC 9110 §12.5.1 allows such an answer and a
 * reason helps more than none.
 */
export function answerFormatFor(fields: HeadFields): AnswerFormat {
  if (isGrpcRequest(fields)) return 'grpc';
  const first = fields.indexOf(FIELD.accept);
  if (first < 0) return 'text';
  if (fields.indexOf(FIELD.accept, first + 1) >= 0) return formatFor(fields);
  // Most requests of a client have the same Accept, and most requests need no answer of the proxy.
  const start = fields.valueStart[first] as number;
  const end = fields.valueEnd[first] as number;
  if (!isLastAccept(fields.bytes, start, end)) {
    lastAccept = fields.bytes.slice(start, end);
    lastFormat = formatFor(fields);
  }
  return lastFormat;
}

/** The last value of a single Accept, and the format that the value asks for. */
let lastAccept: Uint8Array = new Uint8Array(0);
let lastFormat: AnswerFormat = 'text';

function isLastAccept(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== lastAccept.length) return false;
  for (let at = start; at < end; at += 1) if (bytes[at] !== lastAccept[at - start]) return false;
  return true;
}

function formatFor(fields: HeadFields): AnswerFormat {
  precisions.fill(PRECISION.none);
  let bytesRead = 0;
  for (let index = fields.indexOf(FIELD.accept); index >= 0; index = fields.indexOf(FIELD.accept, index + 1)) {
    const start = fields.valueStart[index] as number;
    const end = Math.min(fields.valueEnd[index] as number, start + MAX_ACCEPT_BYTES - bytesRead);
    readAccept(fields.bytes, { start, end, bytesRead });
    bytesRead += end - start;
  }
  let best = -1;
  for (let index = 0; index < MEDIA_TYPES.length; index += 1) {
    const isAcceptable = precisions[index] !== PRECISION.none && weights[index] !== 0;
    if (isAcceptable && (best < 0 || isPreferred(index, best))) best = index;
  }
  return MEDIA_TYPES[best]?.format ?? 'text';
}

function isPreferred(index: number, other: number): boolean {
  const weight = (weights[index] as number) - (weights[other] as number);
  if (weight !== 0) return weight > 0;
  const precision = (precisions[index] as number) - (precisions[other] as number);
  if (precision !== 0) return precision > 0;
  return (positions[index] as number) < (positions[other] as number);
}

/** Reads the media ranges of one field. `bytesRead` is the length of the fields before. */
function readAccept(
  bytes: Uint8Array,
  { start, end, bytesRead }: { readonly start: number; readonly end: number; readonly bytesRead: number },
): void {
  for (let at = start; at < end; at += 1) {
    while (at < end && isWhitespace(bytes[at] as number)) at += 1;
    const typeStart = at;
    while (at < end && bytes[at] !== COMMA && bytes[at] !== SEMICOLON) at += 1;
    let typeEnd = at;
    while (typeEnd > typeStart && isWhitespace(bytes[typeEnd - 1] as number)) typeEnd -= 1;
    const parametersStart = at;
    while (at < end && bytes[at] !== COMMA) at += 1;
    const weight = weightOf(bytes, parametersStart, at);
    for (let index = 0; index < MEDIA_TYPES.length; index += 1) {
      const precision = precisionOf(bytes, { start: typeStart, end: typeEnd }, MEDIA_TYPES[index] as MediaType);
      // RFC 9110 §12.5.1: the most precise media range gives the weight of a type.
      if (precision <= (precisions[index] as number)) continue;
      precisions[index] = precision;
      weights[index] = weight;
      positions[index] = bytesRead + typeStart - start;
    }
  }
}

function precisionOf(
  bytes: Uint8Array,
  range: { readonly start: number; readonly end: number },
  { type, typeRange }: MediaType,
): number {
  if (isMediaRange(bytes, range, type)) return PRECISION.type;
  if (isMediaRange(bytes, range, typeRange)) return PRECISION.typeRange;
  return isMediaRange(bytes, range, ANY_TYPE) ? PRECISION.anyType : PRECISION.none;
}

function isMediaRange(
  bytes: Uint8Array,
  { start, end }: { readonly start: number; readonly end: number },
  expected: Uint8Array,
): boolean {
  if (end - start !== expected.length) return false;
  for (let at = 0; at < expected.length; at += 1) {
    if (((bytes[start + at] as number) | LOWER_CASE_BIT) !== expected[at]) return false;
  }
  return true;
}

/** Returns the weight (`;q=0.8`) of a media range in thousandths (RFC 9110 §12.4.2): 1,000 if there is none. */
function weightOf(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] !== SEMICOLON) continue;
    let name = at + 1;
    while (name < end && isWhitespace(bytes[name] as number)) name += 1;
    if (((bytes[name] as number) | LOWER_CASE_BIT) !== LOWER_Q || bytes[name + 1] !== EQUALS) continue;
    let weight = 0;
    let unit = MAX_WEIGHT;
    for (let digit = name + 2; digit < end && unit >= 1; digit += 1) {
      if (bytes[digit] === DOT && digit === name + 3) continue;
      const value = (bytes[digit] as number) - ZERO;
      if (value < 0 || value > 9) break;
      weight += value * unit;
      unit /= 10;
    }
    return Math.min(weight, MAX_WEIGHT);
  }
  return MAX_WEIGHT;
}

function isWhitespace(byte: number): boolean {
  return byte === SPACE || byte === TAB;
}
