// The two ids by which one request can be found in the logs of several programs: X-Request-Id and traceparent.
import { HEX_VALUE } from '../h1/byte-classes.ts';
import { FIELD } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';
import type { HeadEdit } from './head-edit.ts';
import type { RequestContext } from './request-context.ts';

/** The number of random bytes of a request id and of a trace id. */
export const REQUEST_ID_BYTES = 16;
const PARENT_ID_BYTES = 8;
const MAX_REQUEST_ID_CHARS = 128;
/** `00-TRACE-PARENT-FLAGS` */
const TRACEPARENT_CHARS = 55;

const REQUEST_ID_PREFIX: Uint8Array = asciiBytes('X-Request-Id: ');
const TRACEPARENT_PREFIX: Uint8Array = asciiBytes('traceparent: 00-');
/**
 * The flag `sampled` is set. Without the flag, endpoints that follow the decision of their caller would record no trace
 * at all.
 */
const TRACE_FLAGS_CRLF: Uint8Array = asciiBytes('-01\r\n');
const CRLF: Uint8Array = asciiBytes('\r\n');
const HYPHEN = 0x2d;
const ZERO = 0x30;
const LOWER_F = 0x66;
const UPPER_A = 0x41;
const UPPER_F = 0x46;

/** Random bytes of a parent id, and of a trace id if the request id is the client's. Valid during one pass. */
const randomBytes: Uint8Array = new Uint8Array(REQUEST_ID_BYTES);

/**
 * Keeps X-Request-Id if there is one field and the peer is trusted or the value has 1 to 128 visible ASCII characters.
 * Otherwise replaces the field by 32 random hexadecimal digits, whose bytes are then in `context.requestId`.
 */
export function writeRequestId(edit: HeadEdit, context: RequestContext): void {
  context.isRequestIdMade = !hasUsableRequestId(edit, context.peer.isTrusted);
  if (!context.isRequestIdMade) return;
  edit.drop(FIELD.xRequestId);
  context.fillRandom(context.requestId);
  edit.appended.bytes(REQUEST_ID_PREFIX);
  edit.appended.hex(context.requestId, REQUEST_ID_BYTES);
  edit.appended.bytes(CRLF);
}

/**
 * Keeps traceparent if it is valid (W3C Trace Context §3.2). Otherwise makes a new trace and drops tracestate, because
 * tracestate belongs to the trace that traceparent names (§3.3). If the request id was made too, the trace id has the
 * same digits as the request id.
 */
export function writeTraceContext(edit: HeadEdit, context: RequestContext): void {
  const index = edit.firstOf(FIELD.traceparent);
  if (index >= 0 && edit.countOf(FIELD.traceparent) === 1 && isTraceparent(edit, index)) return;
  edit.drop(FIELD.traceparent);
  edit.drop(FIELD.tracestate);
  const { appended } = edit;
  appended.bytes(TRACEPARENT_PREFIX);
  if (context.isRequestIdMade) appended.hex(context.requestId, REQUEST_ID_BYTES);
  else {
    context.fillRandom(randomBytes);
    appended.hex(randomBytes, REQUEST_ID_BYTES);
  }
  appended.byte(HYPHEN);
  context.fillRandom(randomBytes);
  appended.hex(randomBytes, PARENT_ID_BYTES);
  appended.bytes(TRACE_FLAGS_CRLF);
}

function hasUsableRequestId(edit: HeadEdit, isTrusted: boolean): boolean {
  if (edit.countOf(FIELD.xRequestId) !== 1) return false;
  const index = edit.firstOf(FIELD.xRequestId);
  const { bytes, valueStart, valueEnd } = edit.fields;
  const start = valueStart[index] as number;
  const end = valueEnd[index] as number;
  if (start === end) return false;
  if (isTrusted) return true;
  if (end - start > MAX_REQUEST_ID_CHARS) return false;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

/** Whether the value is `VERSION-TRACE-PARENT-FLAGS` in lower case, with ids that are not zero. */
function isTraceparent({ fields: { bytes, valueStart, valueEnd } }: HeadEdit, index: number): boolean {
  const start = valueStart[index] as number;
  const length = (valueEnd[index] as number) - start;
  if (length < TRACEPARENT_CHARS) return false;
  // W3C Trace Context §3.2.2.1: version ff is forbidden. Only versions after 00 may contain more parts.
  if (bytes[start] === LOWER_F && bytes[start + 1] === LOWER_F) return false;
  const isVersion0 = bytes[start] === ZERO && bytes[start + 1] === ZERO;
  if (length > TRACEPARENT_CHARS && (isVersion0 || bytes[start + TRACEPARENT_CHARS] !== HYPHEN)) return false;
  return (
    isLowerHex(bytes, start, 2) &&
    bytes[start + 2] === HYPHEN &&
    isId(bytes, start + 3, 2 * REQUEST_ID_BYTES) &&
    bytes[start + 35] === HYPHEN &&
    isId(bytes, start + 36, 2 * PARENT_ID_BYTES) &&
    bytes[start + 52] === HYPHEN &&
    isLowerHex(bytes, start + 53, 2)
  );
}

function isId(bytes: Uint8Array, start: number, count: number): boolean {
  if (!isLowerHex(bytes, start, count)) return false;
  for (let at = start; at < start + count; at += 1) if (bytes[at] !== ZERO) return true;
  return false;
}

function isLowerHex(bytes: Uint8Array, start: number, count: number): boolean {
  for (let at = start; at < start + count; at += 1) {
    const byte = bytes[at] as number;
    if (HEX_VALUE[byte] === 255 || (byte >= UPPER_A && byte <= UPPER_F)) return false;
  }
  return true;
}
