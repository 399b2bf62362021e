// The addresses of clients as the transports pass them on: no text is made for an IPv4 address unless the text is needed.
import { parseUnmappedAddressWords } from '@weir/model/data-plane';

/** The address of a peer: for IPv4 a number, of which the text is made on first use, and for IPv6 the text. */
export interface PeerAddress {
  readonly host: number | string;
  readonly port: number;
}

/** Returns the text of `PeerAddress.host`. */
export function hostText(host: number | string): string {
  if (typeof host === 'string') return host;
  return `${host >>> 24}.${(host >>> 16) & 255}.${(host >>> 8) & 255}.${host & 255}`;
}

const words = new Uint32Array(4);

/** Returns the `PeerAddress.host` of an IP literal. For IPv4 a signed number, because V8 allocates no memory for such a number. */
export function hostOf(text: string): number | string {
  return parseUnmappedAddressWords(text, words) === 'ipv4' ? (words[0] as number) | 0 : text;
}
