// 2.2: 12 bytes of signature, version and command, family, length; then addresses and TLVs.
import { crc32c } from './crc32c.ts';
import { formatIp, isUnicast } from './ip-bytes.ts';
import {
  invalid,
  type ProxiedAddresses,
  type ProxyFamily,
  type ProxyHeader,
  type ProxyHeaderParseResult,
  TLV_TYPE,
} from './proxy-header.ts';

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
