import type { ProxyHeader, ProxyHeaderParseResult } from './proxy-header.ts';
import { bytesNeeded, parseProxyHeader } from './read-proxy-header.ts';

/** Takes the bytes of one connection as they come, until it is known what they begin with. */
export interface ProxyHeaderReader {
  /** `bytes` are read during the call only. After another answer than `more` it must not be called again. */
  push(bytes: Uint8Array): 'more' | ProxyHeaderReadResult;
}

export type ProxyHeaderReadResult =
  /** So many bytes of the last push belong to the header; what follows them is the client's. */
  | { readonly kind: 'header'; readonly header: ProxyHeader; readonly consumed: number }
  | Exclude<ProxyHeaderParseResult, { kind: 'header' }>;

export function createProxyHeaderReader(): ProxyHeaderReader {
  return new BufferingReader();
}

const INITIAL_BUFFER_BYTES = 256;

/**
 * A header that comes whole, as nearly all do, is read where it lies. Otherwise no more is held than has come of it: at
 * most 65,551 bytes, the largest header of v2, which a peer must have sent before they cost anything.
 */
class BufferingReader implements ProxyHeaderReader {
  #buffer = new Uint8Array(0);
  #length = 0;

  push(bytes: Uint8Array): 'more' | ProxyHeaderReadResult {
    const before = this.#length;
    if (before === 0) {
      const read = parseProxyHeader(bytes);
      if (read === 'more') this.#append(bytes);
      return readResultOf(read, before);
    }
    for (let taken = 0; taken < bytes.length; ) {
      const missing = bytesNeeded(this.#view()) - this.#length;
      const part = bytes.subarray(taken, taken + missing);
      this.#append(part);
      taken += part.length;
      const read = parseProxyHeader(this.#view());
      if (read !== 'more') return readResultOf(read, before);
    }
    return 'more';
  }

  #view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#buffer.length) {
      const roomier = new Uint8Array(Math.max(INITIAL_BUFFER_BYTES, length, this.#buffer.length * 2));
      roomier.set(this.#view());
      this.#buffer = roomier;
    }
    this.#buffer.set(bytes, this.#length);
    this.#length = length;
  }
}

function readResultOf(read: 'more' | ProxyHeaderParseResult, heldBefore: number): 'more' | ProxyHeaderReadResult {
  if (read === 'more' || read.kind !== 'header') return read;
  return { kind: 'header', header: read.header, consumed: read.header.length - heldBefore };
}
