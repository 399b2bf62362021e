// Errors as gRPC clients expect them: HTTP status 200, and the gRPC status in a head without a body ("Trailers-Only" of
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
import type { RequestRefusal } from '../../metering/outcome.ts';
import { SPACE, TAB } from '../h1/byte-classes.ts';
import { FIELD, type HeadFields } from '../h1/head-fields.ts';
import { asciiBytes } from './byte-writer.ts';

const GRPC: Uint8Array = asciiBytes('application/grpc');
const PLUS = 0x2b;
const SEMICOLON = 0x3b;
const LOWER_CASE_BIT = 0x20;
const SLASH = 0x2f;

/** Whether the content type of a request is `application/grpc`, also with a suffix such as `+proto` or parameters. */
export function isGrpcRequest(fields: HeadFields): boolean {
  const index = fields.indexOf(FIELD.contentType);
  if (index < 0) return false;
  const start = fields.valueStart[index] as number;
  const end = fields.valueEnd[index] as number;
  if (end - start < GRPC.length) return false;
  const { bytes } = fields;
  for (let at = 0; at < GRPC.length; at += 1) {
    const byte = bytes[start + at] as number;
    if ((byte === SLASH ? byte : byte | LOWER_CASE_BIT) !== GRPC[at]) return false;
  }
  const next = start + GRPC.length === end ? SEMICOLON : bytes[start + GRPC.length];
  return next === PLUS || next === SEMICOLON || next === SPACE || next === TAB;
}

const DEADLINE_EXCEEDED = 4;
const UNKNOWN = 2;
/** https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md */
const GRPC_STATUSES: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};

/** Returns the gRPC status for an answer of the proxy. `status` is the HTTP status for the same reason. */
export function grpcStatusFor(reason: RequestRefusal, status: number): number {
  // The other reasons with 504 concern the connection, so that the request was not processed.
  if (reason === 'endpoint-timeout') return DEADLINE_EXCEEDED;
  return GRPC_STATUSES[status] ?? UNKNOWN;
}

/** Returns the value of grpc-message for a text: percent-encoded UTF-8. */
export function grpcMessageFor(text: string): string {
  return [...new TextEncoder().encode(text.trim())]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}
