import { canonicalAddress } from '../match/cidr.ts';
import { ipv6Bytes } from '../match/ipv6-bytes.ts';

/**
 * What counts as one client for limits: an IPv4 address, or the /64 of an IPv6 address, of which a single host can use
 * every one. Text that is no address is a client of its own. IPv4 that arrives as `::ffff:a.b.c.d` counts as IPv4.
 */
export function clientKeyFor(address: string): string {
  if (!address.includes(':')) return address;
  const canonical = canonicalAddress(address);
  if (canonical === undefined || !canonical.includes(':')) return canonical ?? address;
  const bytes = ipv6Bytes(canonical);
  const words = [0, 2, 4, 6].map((at) => ((bytes[at] as number) << 8) | (bytes[at + 1] as number));
  return words.map((word) => word.toString(16)).join(':');
}
