import { canonicalAddress } from '../match/cidr.ts';

/**
 * What counts as one client for limits: an IPv4 address, or the /64 of an IPv6 address, of which a single host can use
 * every one. Text that is no address is a client of its own. IPv4 that arrives as `::ffff:a.b.c.d` counts as IPv4.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const canonical = canonicalAddress(address);
  if (canonical === undefined || !canonical.includes(':')) return canonical ?? address;
  const [head = '', tail] = canonical.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
