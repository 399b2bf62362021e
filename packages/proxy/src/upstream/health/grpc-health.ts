// The messages of `grpc.health.v1.Health/Check`: HealthCheckRequest { string service = 1; } and HealthCheckResponse
// { ServingStatus status = 1; }, in the encoding of Protocol Buffers.
import { failed, type HealthCheckResult, PASSED } from './check.ts';

/** A compression flag and the length of the message (the Length-Prefixed-Message of gRPC over HTTP/2). */
const PREFIX_BYTES = 5;
const SERVICE_TAG = 0x0a;
const STATUS_FIELD = 1;
const WIRE_TYPE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
const MAX_VARINT_BYTES = 10;
const SERVING = 1;
const SERVING_STATUSES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** The names of the status codes of gRPC, by code. */
const CODE_NAMES = [
  ...['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS'],
  ...['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED'],
  ...['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'],
];
/** The meanings of the codes that a health server sends on purpose. */
const CODE_MEANINGS: Readonly<Record<string, string>> = {
  NOT_FOUND: 'the endpoint does not know the health of this service',
  UNIMPLEMENTED: 'the endpoint does not implement grpc.health.v1.Health',
};

/** Returns the request for the health of a service, as the content of an HTTP/2 request. */
export function healthRequest(service: string): Uint8Array {
  const name = Buffer.from(service);
  const message = name.length === 0 ? [] : [SERVICE_TAG, ...varint(name.length), ...name];
  const request = Buffer.alloc(PREFIX_BYTES + message.length);
  request.writeUInt32BE(message.length, 1);
  request.set(message, PREFIX_BYTES);
  return request;
}

/** Returns the result of a response. `grpcStatus` is its field `grpc-status`, or undefined if the field is absent. */
export function healthResultOf(grpcStatus: string | undefined, content: Uint8Array): HealthCheckResult {
  if (grpcStatus === undefined) return failed('an answer without grpc-status');
  if (grpcStatus !== '0') return failed(codeText(grpcStatus));
  const status = servingStatusOf(content);
  if (status === undefined) return failed('not a valid HealthCheckResponse');
  return status === SERVING ? PASSED : failed(SERVING_STATUSES[status] ?? `serving status ${status}`);
}

function codeText(grpcStatus: string): string {
  const name = CODE_NAMES[/^\d{1,2}$/.test(grpcStatus) ? Number(grpcStatus) : -1];
  if (name === undefined) return 'an unknown grpc-status';
  const meaning = CODE_MEANINGS[name];
  return `grpc-status ${grpcStatus} (${name})${meaning === undefined ? '' : `: ${meaning}`}`;
}

/** Returns the status in the content of a response, or undefined if the content is not exactly one valid message. */
function servingStatusOf(content: Uint8Array): number | undefined {
  const bytes = Buffer.from(content);
  // The request allows no compression, so the first byte is 0.
  if (bytes.length < PREFIX_BYTES || bytes[0] !== 0) return undefined;
  if (bytes.readUInt32BE(1) !== bytes.length - PREFIX_BYTES) return undefined;
  const reader = new FieldReader(bytes, PREFIX_BYTES);
  // An absent field has the default value.
  let status: bigint | undefined = 0n;
  while (status !== undefined && !reader.isAtEnd) {
    const tag = reader.varint();
    if (tag === undefined) return undefined;
    const value = reader.value(Number(tag & 7n));
    if (value === undefined || tag >> 3n === 0n) return undefined;
    if (tag === BigInt((STATUS_FIELD << 3) | WIRE_TYPE.varint)) status = value;
  }
  return Number(status);
}

/** Reads the fields of a message. Each method returns undefined if the bytes are not valid. */
class FieldReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#at = start;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Reads or skips the value of a field. Returns the value of a varint, and 0 for a value that was skipped. */
  value(wireType: number): bigint | undefined {
    switch (wireType) {
      case WIRE_TYPE.varint:
        return this.varint();
      case WIRE_TYPE.fixed64:
        return this.#skip(8);
      case WIRE_TYPE.fixed32:
        return this.#skip(4);
      case WIRE_TYPE.bytes: {
        const length = this.varint();
        return length === undefined ? undefined : this.#skip(Number(length));
      }
      default:
        return undefined;
    }
  }

  varint(): bigint | undefined {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES && !this.isAtEnd; index += 1) {
      const byte = this.#bytes[this.#at] as number;
      this.#at += 1;
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    return undefined;
  }

  #skip(length: number): bigint | undefined {
    if (length > this.#bytes.length - this.#at) return undefined;
    this.#at += length;
    return 0n;
  }
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}
