// Writes the PROXY header that an endpoint receives before the client's first byte.
import { formatIp, parseIp, toIpv4Mapped } from './ip-bytes.ts';
import { type ProxiedAddresses, type ProxyVersion, TLV_TYPE } from './proxy-header.ts';
import { V2_SIGNATURE } from './read-proxy-header.ts';

export interface ProxyHeaderContent extends ProxiedAddresses {
  /**
   * The unique id of the connection, at most 128 bytes (section 2.2.5). This field and all fields below are written
   * only in v2.
   */
  readonly uniqueId?: Uint8Array | undefined;
  /** The server name that the client requested. */
  readonly authority?: string | undefined;
  /** The negotiated protocol, such as `h2`. */
  readonly alpn?: string | undefined;
  /** The client's TLS connection. Absent if Weir did not terminate TLS. */
  readonly tls?: { readonly version: string; readonly isVerified: boolean } | undefined;
}

/**
 * Returns the header of a TCP connection. If one address is IPv4 and the other is IPv6, the IPv4 address is written as
 * a mapped IPv6 address. v1 would also allow UNKNOWN for such addresses, but UNKNOWN would hide the client's address
 * from the endpoint. If an address is invalid, for example because the client has disconnected and the kernel gives no
 * address, the header is UNKNOWN (v1) or UNSPEC (v2). Throws a RangeError if the TLVs exceed 65,535 bytes.
 */
export function writeProxyHeader(version: ProxyVersion, content: ProxyHeaderContent): Uint8Array {
  const addresses = encodeAddresses(content);
  if (addresses === undefined) return version === 'v1' ? V1_UNKNOWN_HEADER : V2_UNKNOWN_HEADER;
  return version === 'v1' ? writeV1(content, addresses) : writeV2(content, addresses);
}

const V1_UNKNOWN_HEADER: Uint8Array = Buffer.from('PROXY UNKNOWN\r\n', 'latin1');
const V2_UNKNOWN_HEADER: Uint8Array = Buffer.of(...V2_SIGNATURE, 0x21, 0, 0, 0);
const V2_LOCAL_HEADER: Uint8Array = Buffer.of(...V2_SIGNATURE, 0x20, 0, 0, 0);

/** Returns the header of a connection that the proxy opens for itself, such as a health check. */
export function writeLocalProxyHeader(version: ProxyVersion): Uint8Array {
  return version === 'v1' ? V1_UNKNOWN_HEADER : V2_LOCAL_HEADER;
}

function writeV1({ source, destination }: ProxiedAddresses, { family, from, to }: EncodedAddresses): Uint8Array {
  const addresses = `${v1AddressText(from)} ${v1AddressText(to)}`;
  return Buffer.from(`PROXY ${family} ${addresses} ${source.port} ${destination.port}\r\n`, 'latin1');
}

/**
 * Formats an address for v1. In v1 an IPv6 address may contain only hexadecimal digits and colons (section 2.1), so a
 * mapped address is written without dots.
 */
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
  return Buffer.concat([
    V2_SIGNATURE,
    Buffer.of(0x21, family === 'TCP4' ? 0x11 : 0x21),
    uint16(2 * from.length + 4 + tlvs.length),
    from,
    to,
    uint16(source.port),
    uint16(destination.port),
    tlvs,
  ]);
}

function encodeTlvs({ alpn, authority, uniqueId, tls }: ProxyHeaderContent): Buffer {
  return Buffer.concat([
    encodeTlv(TLV_TYPE.alpn, alpn),
    encodeTlv(TLV_TYPE.authority, authority),
    encodeTlv(TLV_TYPE.uniqueId, uniqueId),
    encodeTlv(TLV_TYPE.ssl, tls && encodeSsl(tls)),
  ]);
}

const PP2_CLIENT_SSL = 0x01;
/**
 * PP2_CLIENT_CERT_CONN | PP2_CLIENT_CERT_SESS: the client has sent a certificate on this connection or earlier in this
 * TLS session.
 */
const PP2_CLIENT_CERT = 0x06;
const PP2_SUBTYPE_SSL_VERSION = 0x21;

/**
 * Encodes the TLV of section 2.2.6 (PP2_TYPE_SSL). Its field `verify` is 0 only if the client has sent a certificate
 * that was verified.
 */
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

/**
 * Encodes both addresses, or returns undefined if an address is invalid. Removes the zone of a link-local address
 * (`%eth0`), because a zone is valid only on this machine.
 */
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
