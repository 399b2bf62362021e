import type { ClientHello, ClientHelloFault } from './client-hello.ts';
import { parseClientHello } from './client-hello.ts';

/** Takes the bytes of one connection as they come, until the ClientHello is whole. */
export interface ClientHelloReader {
  /** `bytes` are copied. After another answer than `more` it must not be called again. */
  push(bytes: Uint8Array): 'more' | ClientHelloReadResult;
  /** All that was pushed, also what came behind the hello: to be sent to the endpoint as it is. */
  readonly bytes: Uint8Array;
}

export type ClientHelloReadResult =
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  | { readonly kind: 'refused'; readonly why: ClientHelloFault };

export function createClientHelloReader(): ClientHelloReader {
  return new BufferingReader();
}

/**
 * The largest record, and the limit of nginx and Envoy. A hello with a post-quantum key share takes 2 KB, with ECH, tickets
 * and a choice of shares 4 KB; so much leaves room and bounds what a client can make us hold before it says whom it wants.
 */
export const MAX_CLIENT_HELLO_BYTES = 16_384;
/** With the heads of its records. Those who send a record for each byte would make six bytes of one. */
export const MAX_CLIENT_HELLO_WIRE_BYTES = 20_480;

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const NO_BYTES = new Uint8Array(0);

class BufferingReader implements ClientHelloReader {
  #buffer: Uint8Array = NO_BYTES;
  #length = 0;
  /** Where the next record begins. */
  #recordOffset = 0;
  /** What the records so far have brought of the message. */
  #message: Uint8Array = NO_BYTES;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  push(bytes: Uint8Array): 'more' | ClientHelloReadResult {
    this.#append(bytes);
    for (;;) {
      const record = this.#buffer.subarray(this.#recordOffset, this.#length);
      const fault = this.#recordOffset === 0 ? firstRecordFault(record) : laterRecordFault(record);
      if (fault !== undefined) return refused(fault);
      if (record.length < RECORD_HEADER_BYTES) return 'more';
      const end = RECORD_HEADER_BYTES + lengthOf(record);
      // Before it has come: whatever follows, it cannot become a hello that is taken.
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
    // Nothing may follow it in its record: the keys for what follows are not agreed upon yet.
    if (body.length > length) return refused('unexpected-message');
    const hello = parseClientHello(body);
    return typeof hello === 'string' ? refused(hello) : { kind: 'hello', hello };
  }

  #append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#buffer.length) {
      // Of a hello in one segment nothing is kept twice; of one in many the copies stay few.
      const roomier = new Uint8Array(this.#length === 0 ? length : Math.max(length, this.#buffer.length * 2));
      roomier.set(this.bytes);
      this.#buffer = roomier;
    }
    this.#buffer.set(bytes, this.#length);
    this.#length = length;
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

/** RFC 8446, 5.1: no handshake record is empty. */
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
