const PREAMBLE_BYTES = 16;
const TCP4_FAMILY = 0x11;

/**
 * Returns the TLVs of a v2 header for TCP by type. Keeps only the first TLV of each type. The proxy needs no such
 * function, because it writes TLVs but does not read them.
 */
export function readTlvs(header: Uint8Array): ReadonlyMap<number, Buffer> {
  const bytes = Buffer.from(header);
  const tlvs = new Map<number, Buffer>();
  let at = PREAMBLE_BYTES + (bytes[13] === TCP4_FAMILY ? 12 : 36);
  while (at < bytes.length) {
    const type = bytes.readUInt8(at);
    const start = at + 3;
    at = start + bytes.readUInt16BE(at + 1);
    if (!tlvs.has(type)) tlvs.set(type, bytes.subarray(start, at));
  }
  return tlvs;
}
