// What is sent to an endpoint before the client's first byte.

import { formatIp, parseIp, toIpv4Mapped } from './ip-bytes.ts';
import { crc32c, type ProxiedAddresses, type ProxyVersion, TLV_TYPE } from './proxy-header.ts';
import { V2_SIGNATURE } from './read-proxy-header.ts';

export interface ProxyHeaderContent extends ProxiedAddresses {
  /** The rest is for v2: v1 has no room for it. At most 128 bytes by the specification. */
  readonly uniqueId?: Uint8Array | undefined;
  /** The server name that the client asked for. */
  readonly authority?: string | undefined;
  /** The protocol that was agreed upon, such as `h2`. */
  readonly alpn?: string | undefined;
  /** The client came by TLS, which ended before. */
  readonly tls?: { readonly version: string; readonly isVerified: boolean } | undefined;
  readonly withChecksum?: boolean | undefined;
}

/**
 * The header for a TCP connection between these ends. When they are of two families both are written as IPv6, the IPv4 one
 * mapped, in either version: UNKNOWN, which v1 would also allow, would keep the client's address from the endpoint. An
 * address that is none (a client that is gone already has none) makes it UNKNOWN. Throws when the TLVs are longer than the
 * header can say.
 */
export function writeProxyHeader(version: ProxyVersion, content: ProxyHeaderContent): Uint8Array {
  const ends = encodeAddresses(content);
  if (ends === undefined) return version === 'v1' ? V1_UNKNOWN_HEADER : V2_UNKNOWN_HEADER;
  return version === 'v1' ? writeV1(content, ends) : writeV2(content, ends);
}

const V1_UNKNOWN_HEADER: Uint8Array = Buffer.from('PROXY UNKNOWN\r\n', 'latin1');
const V2_UNKNOWN_HEADER: Uint8Array = Buffer.of(...V2_SIGNATURE, 0x21, 0, 0, 0);
const V2_LOCAL_HEADER: Uint8Array = Buffer.of(...V2_SIGNATURE, 0x20, 0, 0, 0);

/** For what the proxy itself asks an endpoint, such as a health check: no client is behind it. */
export function writeLocalProxyHeader(version: ProxyVersion): Uint8Array {
  return version === 'v1' ? V1_UNKNOWN_HEADER : V2_LOCAL_HEADER;
}

function writeV1({ source, destination }: ProxiedAddresses, { family, from, to }: EncodedAddresses): Uint8Array {
  const addresses = `${v1AddressText(from)} ${v1AddressText(to)}`;
  return Buffer.from(`PROXY ${family} ${addresses} ${source.port} ${destination.port}\r\n`, 'latin1');
}

/** 2.1 knows IPv6 in hexadecimal only, so a mapped address is spelled without dots. */
function v1AddressText(address: Uint8Array): string {
  const text = formatIp(address);
  if (address.length === 4 || text.includes(':')) return text;
  const [a, b] = [0, 2].map((at) =>
    Buffer.from(address)
      .readUInt16BE(12 + at)
      .toString(16),
  );
  return `::ffff:${a}:${b}`;
}

function writeV2(content: ProxyHeaderContent, { family, from, to }: EncodedAddresses): Uint8Array {
  const { source, destination } = content;
  const tlvs = encodeTlvs(content);
  const header = Buffer.concat([
    V2_SIGNATURE,
    Buffer.of(0x21, family === 'TCP4' ? 0x11 : 0x21),
    uint16(2 * from.length + 4 + tlvs.length),
    from,
    to,
    uint16(source.port),
    uint16(destination.port),
    tlvs,
  ]);
  // Last of all, over a header whose checksum is zero.
  if (content.withChecksum) header.writeUInt32BE(crc32c(header), header.length - 4);
  return header;
}

function encodeTlvs({ alpn, authority, uniqueId, tls, withChecksum = false }: ProxyHeaderContent): Buffer {
  return Buffer.concat([
    encodeTlv(TLV_TYPE.alpn, alpn),
    encodeTlv(TLV_TYPE.authority, authority),
    encodeTlv(TLV_TYPE.uniqueId, uniqueId),
    encodeTlv(TLV_TYPE.ssl, tls && encodeSsl(tls)),
    encodeTlv(TLV_TYPE.crc32c, withChecksum ? Buffer.alloc(4) : undefined),
  ]);
}

/** PP2_CLIENT_SSL, PP2_CLIENT_CERT_CONN, PP2_CLIENT_CERT_SESS: it came by TLS, and has shown a certificate, now or in its session. */
const PP2_CLIENT_SSL = 0x01;
const PP2_CLIENT_CERT = 0x06;
const PP2_SUBTYPE_SSL_VERSION = 0x21;

/** 2.2.6. `verify` is 0 only where a certificate was shown and is believed. */
function encodeSsl({ version, isVerified }: { readonly version: string; readonly isVerified: boolean }): Buffer {
  return Buffer.concat([
    Buffer.of(isVerified ? PP2_CLIENT_SSL | PP2_CLIENT_CERT : PP2_CLIENT_SSL),
    Buffer.of(0, 0, 0, isVerified ? 0 : 1),
    encodeTlv(PP2_SUBTYPE_SSL_VERSION, version),
  ]);
}

function encodeTlv(type: number, value: Uint8Array | string | undefined): Buffer {
  if (value === undefined) return Buffer.alloc(0);
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.of(type), uint16(bytes.length), bytes]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

/** The zone that the kernel tells with a link-local address is of this machine only. */
function encodeAddresses({ source, destination }: ProxiedAddresses): EncodedAddresses | undefined {
  const [from, to] = [source, destination].map(({ address }) => parseIp(address.replace(/%.*$/s, '')));
  if (from === undefined || to === undefined) return undefined;
  return from.length === 4 && to.length === 4
    ? { family: 'TCP4', from, to }
    : { family: 'TCP6', from: toIpv4Mapped(from), to: toIpv4Mapped(to) };
}

interface EncodedAddresses {
  readonly family: 'TCP4' | 'TCP6';
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}
