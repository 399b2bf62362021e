import { ByteBuffer } from './byte-buffer.ts';
import { formatIp, isUnicast, parseIp } from './ip-bytes.ts';
import {
  crc32c,
  type ProxiedAddresses,
  type ProxyHeaderFault,
  type ProxyHeaderParseResult,
  TLV_TYPE,
} from './proxy-header.ts';

export type ProxyHeaderReadResult =
  /**
   * `consumed` is the number of bytes in the last segment that belong to the header. The bytes after the header are
   * from the client.
   */
  | (Extract<ProxyHeaderParseResult, { kind: 'header' }> & { readonly consumed: number })
  | Exclude<ProxyHeaderParseResult, { kind: 'header' }>;

/** The initial size of the buffer. Nearly every header fits into this size. */
const INITIAL_BUFFER_BYTES = 256;

/**
 * Reads the PROXY header of one connection, segment by segment. A header in one segment is parsed without a copy. A
 * header in several segments is buffered. The buffer grows with the received bytes and not with the announced length,
 * up to the largest v2 header (65,551 bytes).
 */
export class ProxyHeaderReader {
  readonly #buffer = new ByteBuffer(INITIAL_BUFFER_BYTES);

  /**
   * Reads a segment without keeping `bytes`. Returns `more` while the header is incomplete. Must not be called again
   * after any other result.
   */
  push(bytes: Uint8Array): 'more' | ProxyHeaderReadResult {
    const buffer = this.#buffer;
    const bufferedBefore = buffer.length;
    if (bufferedBefore === 0) {
      const result = parseProxyHeader(bytes);
      if (result === 'more') buffer.append(bytes);
      return readResultOf(result, bufferedBefore);
    }
    for (let taken = 0; taken < bytes.length; ) {
      const missing = bytesNeeded(buffer.bytes) - buffer.length;
      const part = bytes.subarray(taken, taken + missing);
      buffer.append(part);
      taken += part.length;
      const result = parseProxyHeader(buffer.bytes);
      if (result !== 'more') return readResultOf(result, bufferedBefore);
    }
    return 'more';
  }
}

function readResultOf(result: 'more' | ProxyHeaderParseResult, bufferedBefore: number): 'more' | ProxyHeaderReadResult {
  if (result === 'more' || result.kind !== 'header') return result;
  return { ...result, consumed: result.header.length - bufferedBefore };
}

const NO_HEADER: ProxyHeaderParseResult = { kind: 'none' };

/**
 * Parses the first bytes of a connection. Returns `more` if there are too few bytes to decide. Ignores all bytes after
 * the header, so the result does not change when more bytes follow.
 */
export function parseProxyHeader(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const prefix = bytes[0] === V1_PREFIX[0] ? V1_PREFIX : V2_SIGNATURE;
  const shared = Math.min(bytes.length, prefix.length);
  for (let index = 0; index < shared; index += 1) if (bytes[index] !== prefix[index]) return NO_HEADER;
  if (bytes.length <= prefix.length) return 'more';
  return prefix === V1_PREFIX ? parseV1(bytes) : parseV2(bytes);
}

/**
 * Returns the length up to which the buffer is filled before the next parse. For v1, returns the length of the longest
 * line. For v2, returns the end of the length field until the length is known, and afterwards the end of the header.
 */
function bytesNeeded(bytes: Uint8Array): number {
  if (bytes[0] === V1_PREFIX[0]) return MAX_V1_BYTES;
  return bytes.length < V2_PREAMBLE_BYTES ? V2_PREAMBLE_BYTES : v2Length(bytes);
}

// A v1 header (section 2.1) is one line of text, such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`.
const V1_PREFIX: Uint8Array = Buffer.from('PROXY', 'latin1');
/** The length of the longest valid v1 line, including CRLF. */
const MAX_V1_BYTES = 107;
const CR = 13;
const LF = 10;
const V1_UNKNOWN_PREFIX = 'PROXY UNKNOWN';
const PORT_PATTERN = /^(0|[1-9][0-9]{0,4})$/;

/** Parses a v1 header. `bytes` must begin with `PROXY`. */
function parseV1(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const end = Math.min(bytes.length, MAX_V1_BYTES);
  for (let at = V1_PREFIX.length; at < end; at += 1) {
    const isAfterCr = bytes[at - 1] === CR;
    const isLf = bytes[at] === LF;
    if (isAfterCr && isLf) return parseV1Line(latin1Text(bytes, at - 1), at + 1);
    // A CR without LF, or an LF without CR, does not end the line. An UNKNOWN line may contain anything before CRLF.
    const isSingle = isAfterCr !== isLf;
    if (isSingle && !latin1Text(bytes, at).startsWith(V1_UNKNOWN_PREFIX)) return invalid('line-end');
  }
  return bytes.length < MAX_V1_BYTES ? 'more' : invalid('too-long');
}

function latin1Text(bytes: Uint8Array, end: number): string {
  return String.fromCharCode(...bytes.subarray(0, end));
}

function parseV1Line(line: string, length: number): ProxyHeaderParseResult {
  if (line === V1_UNKNOWN_PREFIX || line.startsWith(`${V1_UNKNOWN_PREFIX} `)) {
    return { kind: 'header', header: { addresses: null, length } };
  }
  const fields = line.split(' ');
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = ''] = fields;
  if (family !== 'TCP4' && family !== 'TCP6') return invalid('protocol');
  if (fields.length !== 6) return invalid('fields');
  const size = family === 'TCP4' ? 4 : 16;
  const from = parseIp(source);
  const to = parseIp(destination);
  // TCP6 does not allow an address in IPv4 format.
  if (from?.length !== size || to?.length !== size) return invalid('address');
  if (!isPort(sourcePort) || !isPort(destinationPort)) return invalid('port');
  if (!isUnicast(from) || !isUnicast(to)) return invalid('not-unicast');
  const addresses = {
    source: { address: formatIp(from), port: Number(sourcePort) },
    destination: { address: formatIp(to), port: Number(destinationPort) },
  };
  return { kind: 'header', header: { addresses, length } };
}

function isPort(text: string): boolean {
  return PORT_PATTERN.test(text) && Number(text) <= 65_535;
}

// A v2 header (section 2.2) begins with a signature of 12 bytes, a byte for version and command, a byte for the address
// family, and the length. The addresses and TLVs follow.
export const V2_SIGNATURE: Uint8Array = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** The size of a v2 header up to and including its length field. */
const V2_PREAMBLE_BYTES = 16;
const V2_LOCAL = 0x20;
const V2_PROXY = 0x21;

interface AddressLayout {
  /** The length of each of the two IP addresses; 0 if the family has no IP addresses. */
  readonly addressBytes: number;
  /** The length of both addresses and both ports. */
  readonly blockBytes: number;
}

const NO_ADDRESSES: AddressLayout = { addressBytes: 0, blockBytes: 0 };
const IPV4_LAYOUT: AddressLayout = { addressBytes: 4, blockBytes: 12 };
const IPV6_LAYOUT: AddressLayout = { addressBytes: 16, blockBytes: 36 };
const UNIX_LAYOUT: AddressLayout = { addressBytes: 0, blockBytes: 216 };

/**
 * The layout of the addresses, by the 14th byte of the header. This byte contains the address family and the protocol:
 * stream (1) or datagram (2). A receiver must refuse all other values.
 */
const LAYOUT_BY_FAMILY: ReadonlyMap<number, AddressLayout> = new Map([
  [0x00, NO_ADDRESSES],
  [0x11, IPV4_LAYOUT],
  [0x12, IPV4_LAYOUT],
  [0x21, IPV6_LAYOUT],
  [0x22, IPV6_LAYOUT],
  [0x31, UNIX_LAYOUT],
  [0x32, UNIX_LAYOUT],
]);

/** Parses a v2 header. `bytes` must begin with the signature and at least one more byte. */
function parseV2(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const [versionAndCommand = 0, family = 0] = bytes.subarray(V2_SIGNATURE.length);
  const isLocal = versionAndCommand === V2_LOCAL;
  if (versionAndCommand >> 4 !== 2) return invalid('version');
  if (!isLocal && versionAndCommand !== V2_PROXY) return invalid('command');
  if (bytes.length <= V2_SIGNATURE.length + 1) return 'more';
  // In a LOCAL header, the receiver ignores the address family, the addresses and the TLVs.
  const layout = isLocal ? NO_ADDRESSES : LAYOUT_BY_FAMILY.get(family);
  if (layout === undefined) return invalid('family');
  if (bytes.length < V2_PREAMBLE_BYTES) return 'more';
  const length = v2Length(bytes);
  if (length < V2_PREAMBLE_BYTES + layout.blockBytes) return invalid('too-short');
  if (bytes.length < length) return 'more';
  return parseV2Body(bytes.subarray(0, length), layout);
}

/** Returns the length of the whole header. */
function v2Length(bytes: Uint8Array): number {
  return V2_PREAMBLE_BYTES + (((bytes[14] as number) << 8) | (bytes[15] as number));
}

function parseV2Body(bytes: Uint8Array, layout: AddressLayout): ProxyHeaderParseResult {
  const { length } = bytes;
  // Without a known family, the receiver cannot know where the addresses end and the TLVs begin.
  if (layout === NO_ADDRESSES) return { kind: 'header', header: { addresses: null, length } };
  const fault = tlvFault(bytes, V2_PREAMBLE_BYTES + layout.blockBytes);
  if (fault !== undefined) return invalid(fault);
  if (layout.addressBytes === 0) return { kind: 'header', header: { addresses: null, length } };
  const addresses = parseV2Addresses(bytes, layout.addressBytes);
  return addresses === undefined ? invalid('not-unicast') : { kind: 'header', header: { addresses, length } };
}

function parseV2Addresses(bytes: Uint8Array, addressBytes: number): ProxiedAddresses | undefined {
  const source = bytes.subarray(V2_PREAMBLE_BYTES, V2_PREAMBLE_BYTES + addressBytes);
  const destination = bytes.subarray(V2_PREAMBLE_BYTES + addressBytes, V2_PREAMBLE_BYTES + 2 * addressBytes);
  if (!isUnicast(source) || !isUnicast(destination)) return undefined;
  const [sourceHigh = 0, sourceLow = 0, high = 0, low = 0] = bytes.subarray(V2_PREAMBLE_BYTES + 2 * addressBytes);
  return {
    source: { address: formatIp(source), port: (sourceHigh << 8) | sourceLow },
    destination: { address: formatIp(destination), port: (high << 8) | low },
  };
}

const TLV_HEADER_BYTES = 3;

/**
 * Returns a fault if a TLV exceeds the header or if the first checksum TLV is wrong. The values of other TLVs are
 * ignored.
 */
function tlvFault(bytes: Uint8Array, start: number): 'tlv' | 'checksum' | undefined {
  let checksum: { readonly from: number; readonly end: number } | undefined;
  for (let at = start; at < bytes.length; ) {
    const [type = 0, high = 0, low = 0] = bytes.subarray(at, at + TLV_HEADER_BYTES);
    const from = at + TLV_HEADER_BYTES;
    at = from + ((high << 8) | low);
    if (at > bytes.length) return 'tlv';
    if (type === TLV_TYPE.crc32c) checksum ??= { from, end: at };
  }
  return checksum === undefined || hasValidChecksum(bytes, checksum) ? undefined : 'checksum';
}

/**
 * Reports whether the checksum is right. The checksum is computed over the header with zeros in place of the checksum
 * (section 2.2.3).
 */
function hasValidChecksum(bytes: Uint8Array, { from, end }: { readonly from: number; readonly end: number }): boolean {
  if (end - from !== 4) return false;
  const expected = new DataView(bytes.buffer, bytes.byteOffset).getUint32(from);
  // Copies the bytes with `new Uint8Array`, because `slice` of a Buffer would not copy.
  return crc32c(new Uint8Array(bytes).fill(0, from, end)) === expected;
}

function invalid(why: ProxyHeaderFault): ProxyHeaderParseResult {
  return { kind: 'invalid', why };
}
