// 2.2: 12 bytes of signature, version and command, family, length; then addresses and TLVs.
import { crc32c } from './crc32c.ts';
import { isUnicast, textOfIp } from './ip-bytes.ts';
import {
  invalid,
  type ProxiedEnds,
  type ProxyFamily,
  type ProxyHeader,
  type ProxyHeaderRead,
  TLV,
} from './proxy-header.ts';

export const V2_SIGNATURE: Uint8Array = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** As much as says how long the header is. */
export const V2_PREAMBLE = 16;

interface FamilyLayout {
  readonly family: ProxyFamily;
  /** Of one of the two addresses. */
  readonly addressBytes: number;
  /** Both addresses, and both ports where there are any. */
  readonly blockBytes: number;
}

/** By the 14th byte: address family, transport. Other combinations must be refused. */
const FAMILIES: ReadonlyMap<number, FamilyLayout> = new Map([
  [0x00, { family: 'UNKNOWN', addressBytes: 0, blockBytes: 0 }],
  [0x11, { family: 'TCP4', addressBytes: 4, blockBytes: 12 }],
  [0x12, { family: 'UDP4', addressBytes: 4, blockBytes: 12 }],
  [0x21, { family: 'TCP6', addressBytes: 16, blockBytes: 36 }],
  [0x22, { family: 'UDP6', addressBytes: 16, blockBytes: 36 }],
  [0x31, { family: 'UNIX', addressBytes: 108, blockBytes: 216 }],
  [0x32, { family: 'UNIX', addressBytes: 108, blockBytes: 216 }],
]);

const UNKNOWN: FamilyLayout = { family: 'UNKNOWN', addressBytes: 0, blockBytes: 0 };
const TLV_HEAD = 3;

interface PlacedTlv {
  readonly type: number;
  readonly from: number;
  readonly end: number;
}

/** Of bytes that begin with the signature, and have at least one more. */
export function readV2(bytes: Uint8Array): 'more' | ProxyHeaderRead {
  const [versionAndCommand = 0, familyByte = 0] = bytes.subarray(V2_SIGNATURE.length);
  const isLocal = versionAndCommand === 0x20;
  if (versionAndCommand >> 4 !== 2) return invalid('version');
  if (!isLocal && versionAndCommand !== 0x21) return invalid('command');
  if (bytes.length <= V2_SIGNATURE.length + 1) return 'more';
  // LOCAL: the family is to be ignored, and so is all that follows.
  const layout = isLocal ? UNKNOWN : FAMILIES.get(familyByte);
  if (layout === undefined) return invalid('family');
  if (bytes.length < V2_PREAMBLE) return 'more';
  const length = v2Length(bytes);
  if (length < V2_PREAMBLE + layout.blockBytes) return invalid('too-short');
  if (bytes.length < length) return 'more';
  const command = isLocal ? 'LOCAL' : 'PROXY';
  return readBody(bytes.subarray(0, length), { version: 'v2', command, family: layout.family, length }, layout);
}

/** Of the whole header. */
export function v2Length(bytes: Uint8Array): number {
  return V2_PREAMBLE + (((bytes[14] as number) << 8) | (bytes[15] as number));
}

function readBody(
  bytes: Uint8Array,
  header: Omit<ProxyHeader, 'ends' | 'tlvs'>,
  { addressBytes, blockBytes }: FamilyLayout,
): ProxyHeaderRead {
  // Where the family says nothing, nobody says where addresses end and TLVs begin.
  if (header.family === 'UNKNOWN') return { kind: 'header', header: { ...header, ends: null, tlvs: [] } };
  const placed = placeTlvs(bytes, V2_PREAMBLE + blockBytes);
  if (placed === undefined) return invalid('tlv');
  if (!isSound(bytes, placed)) return invalid('checksum');
  const tlvs = placed
    .filter(({ type }) => type !== TLV.noop)
    .map(({ type, from, end }) => ({ type, value: copyOf(bytes.subarray(from, end)) }));
  if (header.family === 'UNIX') return { kind: 'header', header: { ...header, ends: null, tlvs } };
  const ends = readEnds(bytes, addressBytes);
  return ends === undefined ? invalid('not-unicast') : { kind: 'header', header: { ...header, ends, tlvs } };
}

function readEnds(bytes: Uint8Array, addressBytes: number): ProxiedEnds | undefined {
  const source = bytes.subarray(V2_PREAMBLE, V2_PREAMBLE + addressBytes);
  const destination = bytes.subarray(V2_PREAMBLE + addressBytes, V2_PREAMBLE + 2 * addressBytes);
  if (!isUnicast(source) || !isUnicast(destination)) return undefined;
  const [sourceHigh = 0, sourceLow = 0, high = 0, low = 0] = bytes.subarray(V2_PREAMBLE + 2 * addressBytes);
  return {
    source: { address: textOfIp(source), port: (sourceHigh << 8) | sourceLow },
    destination: { address: textOfIp(destination), port: (high << 8) | low },
  };
}

/** Undefined: one of them runs past the header. */
function placeTlvs(bytes: Uint8Array, start: number): readonly PlacedTlv[] | undefined {
  const placed: PlacedTlv[] = [];
  for (let at = start; at < bytes.length; ) {
    const [type = 0, high = 0, low = 0] = bytes.subarray(at, at + TLV_HEAD);
    const from = at + TLV_HEAD;
    at = from + ((high << 8) | low);
    if (at > bytes.length) return undefined;
    placed.push({ type, from, end: at });
  }
  return placed;
}

/** 2.2.3: where there is a checksum, it must be that of the header with four zeros in its place. */
function isSound(bytes: Uint8Array, placed: readonly PlacedTlv[]): boolean {
  const checksum = placed.find(({ type }) => type === TLV.crc32c);
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
