// The reference that compiled networks are compared with: each is asked, by the library.
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Whether one of the networks (CIDRs, taken as they are) holds the address. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return networks.some((text) => {
    const [network, prefix] = ipaddr.parseCIDR(text);
    return network.kind() === parsed.kind() && parsed.match(network, prefix);
  });
}

/** IPv4 in IPv6 is IPv4; undefined: it is no address. */
export function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!text.includes(':') || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}
