import { ByteBuffer } from './byte-buffer.ts';
import { type ClientHello, type ClientHelloFault, parseClientHello } from './client-hello.ts';

export type ClientHelloReadResult =
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  | { readonly kind: 'refused'; readonly why: ClientHelloFault };

/**
 * The maximum size of a ClientHello: the size of the largest TLS record, as in nginx and Envoy. Limits the memory that
 * an unrouted client can occupy. A ClientHello with a post-quantum key share has about 2 KB; with ECH, tickets and
 * several key shares it has about 4 KB.
 */
export const MAX_CLIENT_HELLO_BYTES = 16_384;
/**
 * The maximum size of a ClientHello with its record headers. Limits clients that split a ClientHello into many records.
 * With one byte per record, each byte of the ClientHello takes six bytes.
 */
export const MAX_CLIENT_HELLO_WIRE_BYTES = 20_480;

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const NO_BYTES = new Uint8Array(0);

/** Reads the ClientHello of one connection, segment by segment. */
export class ClientHelloReader {
  readonly #buffer = new ByteBuffer();
  /** The offset of the next record in `#buffer`. */
  #recordOffset = 0;
  /** The part of the handshake message that the records read so far contain, without record headers. */
  #message: Uint8Array = NO_BYTES;

  /** All bytes that were pushed, including bytes after the ClientHello, because all bytes are passed on unchanged. */
  get bytes(): Uint8Array {
    return this.#buffer.bytes;
  }

  /** The body of the ClientHello, once `push` has returned it. */
  get body(): Uint8Array {
    return this.#message.subarray(MESSAGE_HEADER_BYTES);
  }

  /**
   * Adds a copy of `bytes`. Returns `more` while the ClientHello is incomplete. Must not be called again after any
   * other result.
   */
  push(bytes: Uint8Array): 'more' | ClientHelloReadResult {
    this.#buffer.append(bytes);
    for (;;) {
      const record = this.#buffer.bytes.subarray(this.#recordOffset);
      const fault = this.#recordOffset === 0 ? firstRecordFault(record) : laterRecordFault(record);
      if (fault !== undefined) return refused(fault);
      if (record.length < RECORD_HEADER_BYTES) return 'more';
      const end = RECORD_HEADER_BYTES + lengthOf(record);
      // The size is checked before the record is complete, because further bytes cannot make the record acceptable.
      if (this.#recordOffset + end > MAX_CLIENT_HELLO_WIRE_BYTES) return refused('too-large');
      if (record.length < end) return 'more';
      this.#recordOffset += end;
      const found = this.#addFragment(record.subarray(RECORD_HEADER_BYTES, end));
      if (found !== 'more') return found;
    }
  }

  #addFragment(fragment: Uint8Array): 'more' | ClientHelloReadResult {
    this.#message = this.#message.length === 0 ? fragment : concat(this.#message, fragment);
    if (this.#message.length < MESSAGE_HEADER_BYTES) return 'more';
    const { 1: high = 0, 2: middle = 0, 3: low = 0 } = this.#message;
    const length = (high << 16) | (middle << 8) | low;
    if (length > MAX_CLIENT_HELLO_BYTES) return refused('too-large');
    const body = this.#message.subarray(MESSAGE_HEADER_BYTES);
    if (body.length < length) return 'more';
    // A message before a key change must be the last message of its record (RFC 8446 §5.1).
    if (body.length > length) return refused('unexpected-message');
    const hello = parseClientHello(body);
    return typeof hello === 'string' ? refused(hello) : { kind: 'hello', hello };
  }
}

function firstRecordFault(record: Uint8Array): ClientHelloFault | undefined {
  const { 0: type = HANDSHAKE, 1: major = 3, 2: third, 5: message = CLIENT_HELLO } = record;
  if (type > 0x7f) return third === undefined ? undefined : third === CLIENT_HELLO ? 'ssl2' : 'not-tls';
  if (type !== HANDSHAKE || major !== 3) return 'not-tls';
  return sizeFault(record) ?? (message === CLIENT_HELLO ? undefined : 'unexpected-message');
}

function laterRecordFault(record: Uint8Array): ClientHelloFault | undefined {
  const { 0: type = HANDSHAKE, 1: major = 3 } = record;
  if (type !== HANDSHAKE) return 'unexpected-message';
  return major === 3 ? sizeFault(record) : 'malformed';
}

/**
 * Returns what is wrong with the size of a record, or undefined if the size is valid. A handshake record must not be
 * empty (RFC 8446 §5.1).
 */
function sizeFault(record: Uint8Array): ClientHelloFault | undefined {
  if (record.length < RECORD_HEADER_BYTES) return undefined;
  const length = lengthOf(record);
  if (length === 0) return 'malformed';
  return length > MAX_CLIENT_HELLO_BYTES ? 'too-large' : undefined;
}

function lengthOf(record: Uint8Array): number {
  return ((record[3] as number) << 8) | (record[4] as number);
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function refused(why: ClientHelloFault): ClientHelloReadResult {
  return { kind: 'refused', why };
}
