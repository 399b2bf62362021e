// The PROXY header, in which a load balancer in front of the proxy sends the address of the client:
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt. Section numbers in comments refer to this text.
import type { SocketAddress } from '../transport/tcp-transport.ts';

export type ProxyVersion = 'v1' | 'v2';

export interface ProxyHeader {
  /**
   * The addresses in the header. Null if the header has no IP addresses (LOCAL, UNKNOWN, UNSPEC or Unix sockets). In
   * this case the proxy uses the addresses of the connection itself (sections 2.1 and 2.2).
   */
  readonly addresses: ProxiedAddresses | null;
  /** The length of the header in bytes. */
  readonly length: number;
}

/** Addresses in canonical text. An IPv4-mapped IPv6 address is converted to an IPv4 address. */
export interface ProxiedAddresses {
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
}

/** The numbers of the TLV types, which sections 2.2.2 to 2.2.6 call PP2_TYPE_…. */
export const TLV_TYPE = { alpn: 0x01, authority: 0x02, crc32c: 0x03, uniqueId: 0x05, ssl: 0x20 } as const;

export type ProxyHeaderFault =
  /** Faults of v1 headers. */
  | 'line-end'
  | 'too-long'
  | 'fields'
  | 'protocol'
  | 'address'
  | 'port'
  /** Faults of v2 headers. */
  | 'version'
  | 'command'
  | 'family'
  | 'too-short'
  | 'tlv'
  | 'checksum'
  /** The address is multicast, broadcast or unspecified, so it is not the address of a client. */
  | 'not-unicast';

export type ProxyHeaderParseResult =
  | { readonly kind: 'header'; readonly header: ProxyHeader }
  /** The first bytes are not a PROXY header. The receiver must refuse the connection and must not guess (section 2). */
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly why: ProxyHeaderFault };

// The Castagnoli polynomial, bit-reversed (RFC 4960 appendix B).
const CRC32C_POLYNOMIAL = 0x82f63b78;

const CRC32C_TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ CRC32C_POLYNOMIAL : value >>> 1;
  return value;
});

/** Returns the CRC-32C as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (CRC32C_TABLE[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return ~value >>> 0;
}
