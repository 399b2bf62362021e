import { formatIp, isUnicast, parseIp } from './ip-bytes.ts';
import {
  crc32c,
  invalid,
  type ProxiedAddresses,
  type ProxyFamily,
  type ProxyHeader,
  type ProxyHeaderParseResult,
  TLV_TYPE,
} from './proxy-header.ts';

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

const NO_HEADER: ProxyHeaderParseResult = { kind: 'none' };

/**
 * What these bytes, the first of a connection, begin with; `more` when they do not say it yet. Looks at no byte beyond the
 * header. Law: once it is known for some bytes, it is the same for whatever follows them.
 */
export function parseProxyHeader(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const prefix = bytes[0] === V1_PREFIX[0] ? V1_PREFIX : V2_SIGNATURE;
  const shared = Math.min(bytes.length, prefix.length);
  for (let index = 0; index < shared; index += 1) if (bytes[index] !== prefix[index]) return NO_HEADER;
  if (bytes.length <= prefix.length) return 'more';
  return prefix === V1_PREFIX ? parseV1(bytes) : parseV2(bytes);
}

/** How long these bytes, which need more, may become before they say how long the header is, or are it. */
export function bytesNeeded(bytes: Uint8Array): number {
  if (bytes[0] === V1_PREFIX[0]) return MAX_V1_BYTES;
  return bytes.length < V2_PREAMBLE_BYTES ? V2_PREAMBLE_BYTES : v2Length(bytes);
}

// 2.1: one line of text, such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`.
export const V1_PREFIX: Uint8Array = Buffer.from('PROXY', 'latin1');
/** The longest line that any field can make, CRLF included. */
export const MAX_V1_BYTES = 107;
const CR = 13;
const LF = 10;
const V1_UNKNOWN_PREFIX = 'PROXY UNKNOWN';
const PORT_PATTERN = /^(0|[1-9][0-9]{0,4})$/;

/** Of bytes that begin with `PROXY`. */
export function parseV1(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const most = Math.min(bytes.length, MAX_V1_BYTES);
  for (let at = V1_PREFIX.length; at < most; at += 1) {
    const isAfterCr = bytes[at - 1] === CR;
    const isLf = bytes[at] === LF;
    if (isAfterCr && isLf) return parseV1Line(latin1Text(bytes, at - 1), at + 1);
    // A lone CR or LF must not be taken for the end of the line; of UNKNOWN everything before CRLF is ignored.
    const isLone = isAfterCr !== isLf;
    if (isLone && !latin1Text(bytes, at).startsWith(V1_UNKNOWN_PREFIX)) return invalid('line-end');
  }
  return bytes.length < MAX_V1_BYTES ? 'more' : invalid('too-long');
}

function latin1Text(bytes: Uint8Array, end: number): string {
  return String.fromCharCode(...bytes.subarray(0, end));
}

function parseV1Line(line: string, length: number): ProxyHeaderParseResult {
  const header = { version: 'v1', command: 'PROXY', tlvs: [], length } as const;
  if (line === V1_UNKNOWN_PREFIX || line.startsWith(`${V1_UNKNOWN_PREFIX} `)) {
    return { kind: 'header', header: { ...header, family: 'UNKNOWN', addresses: null } };
  }
  const fields = line.split(' ');
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = ''] = fields;
  if (family !== 'TCP4' && family !== 'TCP6') return invalid('protocol');
  if (fields.length !== 6) return invalid('fields');
  const size = family === 'TCP4' ? 4 : 16;
  const from = parseIp(source);
  const to = parseIp(destination);
  // The family dictates the format: no IPv4 text in TCP6.
  if (from?.length !== size || to?.length !== size) return invalid('address');
  if (!isPort(sourcePort) || !isPort(destinationPort)) return invalid('port');
  if (!isUnicast(from) || !isUnicast(to)) return invalid('not-unicast');
  const addresses = {
    source: { address: formatIp(from), port: Number(sourcePort) },
    destination: { address: formatIp(to), port: Number(destinationPort) },
  };
  return { kind: 'header', header: { ...header, family, addresses } };
}

function isPort(text: string): boolean {
  return PORT_PATTERN.test(text) && Number(text) <= 65_535;
}

// 2.2: 12 bytes of signature, version and command, family, length; then addresses and TLVs.
export const V2_SIGNATURE: Uint8Array = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** As much as says how long the header is. */
export const V2_PREAMBLE_BYTES = 16;

interface FamilyLayout {
  readonly family: ProxyFamily;
  /** Of one of the two addresses. */
  readonly addressBytes: number;
  /** Both addresses, and both ports where there are any. */
  readonly addressBlockBytes: number;
}

/** By the 14th byte: address family, transport. Other combinations must be refused. */
const FAMILY_LAYOUTS: ReadonlyMap<number, FamilyLayout> = new Map([
  [0x00, { family: 'UNKNOWN', addressBytes: 0, addressBlockBytes: 0 }],
  [0x11, { family: 'TCP4', addressBytes: 4, addressBlockBytes: 12 }],
  [0x12, { family: 'UDP4', addressBytes: 4, addressBlockBytes: 12 }],
  [0x21, { family: 'TCP6', addressBytes: 16, addressBlockBytes: 36 }],
  [0x22, { family: 'UDP6', addressBytes: 16, addressBlockBytes: 36 }],
  [0x31, { family: 'UNIX', addressBytes: 108, addressBlockBytes: 216 }],
  [0x32, { family: 'UNIX', addressBytes: 108, addressBlockBytes: 216 }],
]);

const UNKNOWN_LAYOUT: FamilyLayout = { family: 'UNKNOWN', addressBytes: 0, addressBlockBytes: 0 };
const TLV_HEADER_BYTES = 3;

interface TlvRange {
  readonly type: number;
  readonly from: number;
  readonly end: number;
}

/** Of bytes that begin with the signature, and have at least one more. */
export function parseV2(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const [versionAndCommand = 0, familyByte = 0] = bytes.subarray(V2_SIGNATURE.length);
  const isLocal = versionAndCommand === 0x20;
  if (versionAndCommand >> 4 !== 2) return invalid('version');
  if (!isLocal && versionAndCommand !== 0x21) return invalid('command');
  if (bytes.length <= V2_SIGNATURE.length + 1) return 'more';
  // LOCAL: the family is to be ignored, and so is all that follows.
  const layout = isLocal ? UNKNOWN_LAYOUT : FAMILY_LAYOUTS.get(familyByte);
  if (layout === undefined) return invalid('family');
  if (bytes.length < V2_PREAMBLE_BYTES) return 'more';
  const length = v2Length(bytes);
  if (length < V2_PREAMBLE_BYTES + layout.addressBlockBytes) return invalid('too-short');
  if (bytes.length < length) return 'more';
  const command = isLocal ? 'LOCAL' : 'PROXY';
  return parseV2Body(bytes.subarray(0, length), { version: 'v2', command, family: layout.family, length }, layout);
}

/** Of the whole header. */
export function v2Length(bytes: Uint8Array): number {
  return V2_PREAMBLE_BYTES + (((bytes[14] as number) << 8) | (bytes[15] as number));
}

function parseV2Body(
  bytes: Uint8Array,
  header: Omit<ProxyHeader, 'addresses' | 'tlvs'>,
  { addressBytes, addressBlockBytes }: FamilyLayout,
): ProxyHeaderParseResult {
  // Where the family says nothing, nobody says where addresses end and TLVs begin.
  if (header.family === 'UNKNOWN') return { kind: 'header', header: { ...header, addresses: null, tlvs: [] } };
  const placed = locateTlvs(bytes, V2_PREAMBLE_BYTES + addressBlockBytes);
  if (placed === undefined) return invalid('tlv');
  if (!hasValidChecksum(bytes, placed)) return invalid('checksum');
  const tlvs = placed
    .filter(({ type }) => type !== TLV_TYPE.noop)
    .map(({ type, from, end }) => ({ type, value: copyOf(bytes.subarray(from, end)) }));
  if (header.family === 'UNIX') return { kind: 'header', header: { ...header, addresses: null, tlvs } };
  const addresses = parseV2Addresses(bytes, addressBytes);
  return addresses === undefined ? invalid('not-unicast') : { kind: 'header', header: { ...header, addresses, tlvs } };
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

/** Undefined: one of them runs past the header. */
function locateTlvs(bytes: Uint8Array, start: number): readonly TlvRange[] | undefined {
  const placed: TlvRange[] = [];
  for (let at = start; at < bytes.length; ) {
    const [type = 0, high = 0, low = 0] = bytes.subarray(at, at + TLV_HEADER_BYTES);
    const from = at + TLV_HEADER_BYTES;
    at = from + ((high << 8) | low);
    if (at > bytes.length) return undefined;
    placed.push({ type, from, end: at });
  }
  return placed;
}

/** 2.2.3: where there is a checksum, it must be that of the header with four zeros in its place. */
function hasValidChecksum(bytes: Uint8Array, placed: readonly TlvRange[]): boolean {
  const checksum = placed.find(({ type }) => type === TLV_TYPE.crc32c);
  if (checksum === undefined) return true;
  const { from, end } = checksum;
  if (end - from !== 4) return false;
  const said = new DataView(bytes.buffer, bytes.byteOffset).getUint32(from);
  return crc32c(copyOf(bytes).fill(0, from, end)) === said;
}

/** `slice` of a Buffer copies nothing. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}
