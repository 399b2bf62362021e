// IP addresses as 4 or 16 bytes in network byte order.
import { isIPv4, isIPv6 } from 'node:net';
import { ipv6Bytes } from '@weir/model/data-plane';

const IPV4_MAPPED_PREFIX: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Parses an IP literal. Returns undefined for any other text. Also returns undefined for an address with a zone
 * (`%eth0`), because a zone means nothing on another machine.
 */
export function parseIp(text: string): Uint8Array | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number);
  return isIPv6(text) && !text.includes('%') ? ipv6Bytes(text) : undefined;
}

/** Returns an IPv4 address as an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). Returns an IPv6 address unchanged. */
export function toIpv4Mapped(address: Uint8Array): Uint8Array {
  return address.length === 4 ? Uint8Array.of(...IPV4_MAPPED_PREFIX, ...address) : address;
}

/** Returns the canonical text of an address (RFC 5952). An IPv4-mapped address is written as an IPv4 address. */
export function formatIp(address: Uint8Array): string {
  if (address.length === 4) return address.join('.');
  if (isIpv4Mapped(address)) return address.subarray(IPV4_MAPPED_PREFIX.length).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => groupAt(address, index));
  const hex = groups.map((group) => group.toString(16));
  const { start, length } = longestZeroRun(groups);
  if (length < 2) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}

/** Whether the address is neither unspecified, nor multicast, nor broadcast. */
export function isUnicast(address: Uint8Array): boolean {
  if (isIpv4Mapped(address)) return isUnicast(address.subarray(IPV4_MAPPED_PREFIX.length));
  const [first = 0] = address;
  if (address.every((byte) => byte === 0)) return false;
  return address.length === 4 ? (first & 0xf0) !== 0xe0 && address.some((byte) => byte !== 255) : first !== 0xff;
}

function isIpv4Mapped(address: Uint8Array): boolean {
  return address.length === 16 && IPV4_MAPPED_PREFIX.every((byte, index) => address[index] === byte);
}

function groupAt(address: Uint8Array, index: number): number {
  return ((address[index * 2] as number) << 8) | (address[index * 2 + 1] as number);
}

/** Returns the longest run of zero groups, or the first of several equally long runs (RFC 5952 §4.2.3). */
function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } {
  let longest = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== 0) start = index + 1;
    else if (index + 1 - start > longest.length) longest = { start, length: index + 1 - start };
  }
  return longest;
}
