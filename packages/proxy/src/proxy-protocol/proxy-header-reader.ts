import type { ProxyHeader, ProxyHeaderRead } from './proxy-header.ts';
import { bytesWanted, readProxyHeader } from './read-proxy-header.ts';

/** Takes the bytes of one connection as they come, until it is known what they begin with. */
export interface ProxyHeaderReader {
  /** `bytes` are read during the call only. After another answer than `more` it must not be called again. */
  push(bytes: Uint8Array): 'more' | ProxyHeaderFound;
}

export type ProxyHeaderFound =
  /** So many bytes of the last push belong to the header; what follows them is the client's. */
  | { readonly kind: 'header'; readonly header: ProxyHeader; readonly consumed: number }
  | Exclude<ProxyHeaderRead, { kind: 'header' }>;

export function createProxyHeaderReader(): ProxyHeaderReader {
  return new Reader();
}

const FIRST_ROOM = 256;

/**
 * A header that comes whole, as nearly all do, is read where it lies. Otherwise no more is held than has come of it: at
 * most 65,551 bytes, the largest header of v2, which a peer must have sent before they cost anything.
 */
class Reader implements ProxyHeaderReader {
  #held = new Uint8Array(0);
  #length = 0;

  push(bytes: Uint8Array): 'more' | ProxyHeaderFound {
    const before = this.#length;
    if (before === 0) {
      const read = readProxyHeader(bytes);
      if (read === 'more') this.#hold(bytes);
      return found(read, before);
    }
    for (let taken = 0; taken < bytes.length; ) {
      const missing = bytesWanted(this.#view()) - this.#length;
      const part = bytes.subarray(taken, taken + missing);
      this.#hold(part);
      taken += part.length;
      const read = readProxyHeader(this.#view());
      if (read !== 'more') return found(read, before);
    }
    return 'more';
  }

  #view(): Uint8Array {
    return this.#held.subarray(0, this.#length);
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#held.length) {
      const roomier = new Uint8Array(Math.max(FIRST_ROOM, length, this.#held.length * 2));
      roomier.set(this.#view());
      this.#held = roomier;
    }
    this.#held.set(bytes, this.#length);
    this.#length = length;
  }
}

function found(read: 'more' | ProxyHeaderRead, heldBefore: number): 'more' | ProxyHeaderFound {
  if (read === 'more' || read.kind !== 'header') return read;
  return { kind: 'header', header: read.header, consumed: read.header.length - heldBefore };
}
