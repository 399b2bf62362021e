import type { SocketAddress } from '../transport/tcp-transport.ts';

// The header that a proxy in front puts before the first byte of a connection, so that who comes after knows the client:
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt (section numbers below are of that text).
export type ProxyVersion = 'v1' | 'v2';

export interface ProxyHeader {
  readonly version: ProxyVersion;
  /** LOCAL: the proxy in front speaks for itself, such as by a health check. */
  readonly command: 'PROXY' | 'LOCAL';
  readonly family: ProxyFamily;
  /** Null: LOCAL, UNKNOWN, or not IP; then the real ends of the connection count (2.1, 2.2). */
  readonly addresses: ProxiedAddresses | null;
  /** In the order of the header; where a type comes twice, the first counts. v2 only. */
  readonly tlvs: readonly Tlv[];
  /** All of its bytes. */
  readonly length: number;
}

export type ProxyFamily = 'TCP4' | 'TCP6' | 'UDP4' | 'UDP6' | 'UNIX' | 'UNKNOWN';

/** Canonical text; IPv4 that was written as `::ffff:a.b.c.d` is IPv4. */
export interface ProxiedAddresses {
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
}

export interface Tlv {
  readonly type: number;
  /** A copy, to be kept as long as one likes. */
  readonly value: Uint8Array;
}

/** PP2_TYPE_… (2.2.2 to 2.2.6). */
export const TLV_TYPE = { alpn: 0x01, authority: 0x02, crc32c: 0x03, noop: 0x04, uniqueId: 0x05, ssl: 0x20 } as const;

export type ProxyHeaderFault =
  /** v1 */
  | 'line-end'
  | 'too-long'
  | 'fields'
  | 'protocol'
  | 'address'
  | 'port'
  /** v2 */
  | 'version'
  | 'command'
  | 'family'
  | 'too-short'
  | 'tlv'
  | 'checksum'
  /** Well formed, but no client is there: multicast, broadcast, or `0.0.0.0`. */
  | 'not-unicast';

export type ProxyHeaderParseResult =
  | { readonly kind: 'header'; readonly header: ProxyHeader }
  /** The first bytes are no PROXY header. Never to be guessed at (2): whoever must send one and does not is refused. */
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly why: ProxyHeaderFault };

export function invalid(why: ProxyHeaderFault): ProxyHeaderParseResult {
  return { kind: 'invalid', why };
}

// RFC 4960, appendix B: the Castagnoli polynomial, reflected.
const CRC32C_POLYNOMIAL = 0x82f63b78;

const CRC32C_TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ CRC32C_POLYNOMIAL : value >>> 1;
  return value;
});

/** An unsigned integer of 32 bits. */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (CRC32C_TABLE[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return ~value >>> 0;
}
