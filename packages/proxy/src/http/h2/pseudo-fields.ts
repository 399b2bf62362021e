import { isSameHost } from '../h1/authority.ts';
import { METHOD, methodIdOf } from '../h1/methods.ts';
import type { RequestHeadRefusal } from '../h1/refusals.ts';
import { MAX_TARGET_BYTES } from '../h1/request-line.ts';
import { asciiBytes } from '../passes/byte-writer.ts';
import { MIN_PSEUDO_ID, PSEUDO } from './hpack/static-table.ts';

const MAX_METHOD_BYTES = 64;
/** A host of 255 bytes and a port. */
const MAX_AUTHORITY_BYTES = 262;
/** The longest request line with Host that `DecodedHead` writes. */
export const MAX_REQUEST_LINE_BYTES: number = MAX_METHOD_BYTES + MAX_TARGET_BYTES + MAX_AUTHORITY_BYTES + 64;

// Where the values are kept.
const METHOD_AT = 0;
const AUTHORITY_AT: number = METHOD_AT + MAX_METHOD_BYTES;
const PATH_AT: number = AUTHORITY_AT + MAX_AUTHORITY_BYTES;
const VALUES_BYTES: number = PATH_AT + MAX_TARGET_BYTES;

const HTTP: Uint8Array = asciiBytes('http');
const HTTPS: Uint8Array = asciiBytes('https');
const WEBSOCKET: Uint8Array = asciiBytes('websocket');

const bitOf = (id: number): number => 1 << (id - MIN_PSEUDO_ID);
const METHOD_BIT: number = bitOf(PSEUDO.method);
const SCHEME_BIT: number = bitOf(PSEUDO.scheme);
const AUTHORITY_BIT: number = bitOf(PSEUDO.authority);
const PATH_BIT: number = bitOf(PSEUDO.path);
const STATUS_BIT: number = bitOf(PSEUDO.status);
const PROTOCOL_BIT: number = bitOf(PSEUDO.protocol);
const REQUEST_BITS: number = METHOD_BIT | SCHEME_BIT | PATH_BIT;

/** A value: the bytes of `values` from `start` on. `length` is -1 if the value is too long or missing. */
export interface KeptValue {
  readonly start: number;
  length: number;
}

/** The pseudo-fields of one head (RFC 9113 §8.3). Their order is free, so their values are kept until the head ends. */
export class PseudoFields {
  readonly values: Uint8Array = new Uint8Array(VALUES_BYTES);
  readonly method: KeptValue = { start: METHOD_AT, length: -1 };
  /** The value of `:authority`, or of Host if there is no `:authority`. */
  readonly authority: KeptValue = { start: AUTHORITY_AT, length: -1 };
  readonly path: KeptValue = { start: PATH_AT, length: -1 };
  isHttp = false;
  isHttps = false;
  /** Whether `:protocol` is `websocket`. */
  isWebSocket = false;
  /** The value of `:status`; 0 if it is not a status. */
  status = 0;
  /** The received pseudo-fields, as bits by `id - MIN_PSEUDO_ID`. */
  #seen = 0;

  reset(): void {
    this.#seen = 0;
    this.method.length = -1;
    this.authority.length = -1;
    this.path.length = -1;
    this.isHttp = false;
    this.isHttps = false;
    this.isWebSocket = false;
    this.status = 0;
  }

  /** The id of the method (`METHOD`). */
  get methodId(): number {
    return this.method.length <= 0 ? METHOD.other : methodIdOf(this.values, METHOD_AT, METHOD_AT + this.method.length);
  }

  /** Whether the head has `:protocol` (RFC 8441 §4). */
  get isExtendedConnect(): boolean {
    return (this.#seen & PROTOCOL_BIT) !== 0;
  }

  /** Takes the value from `start` to `end` (exclusive). */
  take(id: number, bytes: Uint8Array, start: number, end: number): RequestHeadRefusal | 'malformed' | undefined {
    // RFC 9113 §8.3: a pseudo-field occurs once.
    if ((this.#seen & bitOf(id)) !== 0) return 'malformed';
    this.#seen |= bitOf(id);
    switch (id) {
      case PSEUDO.method:
        return keep(this.values, this.method, MAX_METHOD_BYTES, bytes, start, end) ? undefined : 'method-too-long';
      case PSEUDO.path:
        return keep(this.values, this.path, MAX_TARGET_BYTES, bytes, start, end) ? undefined : 'target-too-long';
      case PSEUDO.authority:
        return this.#keepAuthority(bytes, start, end);
      case PSEUDO.scheme:
        this.isHttps = isValue(bytes, start, end, HTTPS);
        this.isHttp = isValue(bytes, start, end, HTTP);
        return undefined;
      case PSEUDO.protocol:
        this.isWebSocket = isValue(bytes, start, end, WEBSOCKET);
        return undefined;
      default:
        this.status = statusOf(bytes, start, end);
        return undefined;
    }
  }

  /** Takes the value of Host, which must equal `:authority`. There must be space for another Host after `end`. */
  takeHost(bytes: Uint8Array, start: number, end: number): RequestHeadRefusal | 'malformed' | undefined {
    if ((this.#seen & AUTHORITY_BIT) === 0) return this.#keepAuthority(bytes, start, end);
    const { length } = this.authority;
    if (end - start !== length) return 'malformed';
    for (let at = 0; at < length; at += 1) bytes[end + at] = this.values[AUTHORITY_AT + at] as number;
    // RFC 9113 §8.3.1: a request whose Host differs from `:authority` is malformed.
    return isSameHost(bytes, start, end, end) ? undefined : 'malformed';
  }

  /** Whether a request has the pseudo-fields that it must have, and no others. */
  isRequest(): boolean {
    const seen = this.#seen;
    // RFC 9113 §8.3.2: `:status` occurs only in responses.
    if ((seen & STATUS_BIT) !== 0 || this.method.length === 0) return false;
    if (this.methodId === METHOD.connect && !this.isExtendedConnect) {
      // RFC 9113 §8.5: CONNECT has only `:method` and `:authority`.
      return seen === (METHOD_BIT | AUTHORITY_BIT);
    }
    // RFC 9113 §8.3.1: a request has `:method`, `:scheme` and `:path`, which is not empty.
    if ((seen & REQUEST_BITS) !== REQUEST_BITS || this.path.length === 0) return false;
    // RFC 8441 §4: `:protocol` occurs only with CONNECT and `:authority`.
    return !this.isExtendedConnect || (this.methodId === METHOD.connect && (seen & AUTHORITY_BIT) !== 0);
  }

  /** Whether a response has a valid `:status`, and nothing else. */
  isResponse(): boolean {
    // RFC 9113 §8.6: HTTP/2 has no 101. RFC 9110 §15: the class of a status code is 1 to 5.
    return this.#seen === STATUS_BIT && this.status >= 100 && this.status <= 599 && this.status !== 101;
  }

  #keepAuthority(bytes: Uint8Array, start: number, end: number): RequestHeadRefusal | undefined {
    return keep(this.values, this.authority, MAX_AUTHORITY_BYTES, bytes, start, end) ? undefined : 'invalid-host';
  }
}

/** Copies a value. Returns false if the value is too long. */
function keep(
  values: Uint8Array,
  value: KeptValue,
  maxLength: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  if (end - start > maxLength) return false;
  value.length = end - start;
  for (let at = start; at < end; at += 1) values[value.start + at - start] = bytes[at] as number;
  return true;
}

/** Whether the bytes from `start` to `end` (exclusive) are `value`. */
export function isValue(bytes: Uint8Array, start: number, end: number, value: Uint8Array): boolean {
  if (end - start !== value.length) return false;
  for (let at = start; at < end; at += 1) if (bytes[at] !== value[at - start]) return false;
  return true;
}

/** Returns the number of three digits, or 0. */
function statusOf(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== 3) return 0;
  let status = 0;
  for (let at = start; at < end; at += 1) {
    const digit = (bytes[at] as number) - 0x30;
    if (digit < 0 || digit > 9) return 0;
    status = status * 10 + digit;
  }
  return status;
}
