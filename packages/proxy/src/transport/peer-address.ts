// Addresses of peers, in the form in which the transports pass them to handlers. An IPv4 address stays a number, so that a
// datagram allocates no text unless the text is needed.
import { parseUnmappedAddressWords } from '@weir/model/data-plane';

/** The address of a peer. `host` is a 32-bit number for IPv4, and text for IPv6. */
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

/** Returns the `PeerAddress.host` of an IP literal. An IPv4 address is a signed number, which V8 stores without an allocation. */
export function hostOf(text: string): number | string {
  return parseUnmappedAddressWords(text, words) === 'ipv4' ? (words[0] as number) | 0 : text;
}
