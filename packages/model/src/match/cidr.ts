import ipaddr from 'ipaddr.js';

/** A network of addresses: the canonical text and what it holds. */
export interface Cidr {
  readonly text: string;
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefix: number;
}

/** `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`. Tenants write these: a longer text must cost nothing. */
const LONGEST_CIDR = 49;

/**
 * A CIDR such as `10.0.0.0/8` or `fd00::/8`; blanks around it are allowed, as the API server allows them.
 * Undefined when it is not one. Host bits are cleared, so equal networks have equal text.
 */
export function parseCidr(text: string): Cidr | undefined {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST_CIDR) return undefined;
  // ipaddr.js takes short and octal IPv4 forms, which mean different networks to different programs.
  if (!/^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)\/[0-9]{1,3}$/.test(trimmed)) return undefined;
  if (/(^|\.)0[0-9]/.test(trimmed.split('/')[0] ?? '')) return undefined;
  try {
    const [, prefix] = ipaddr.parseCIDR(trimmed);
    const address = trimmed.includes(':')
      ? ipaddr.IPv6.networkAddressFromCIDR(trimmed)
      : ipaddr.IPv4.networkAddressFromCIDR(trimmed);
    return { text: `${address.toString()}/${prefix}`, address, prefix };
  } catch {
    return undefined;
  }
}

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
/** Canonical: four decimal numbers up to 255 without leading zeros. */
const IPV4: RegExp = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
/** 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 and the broadcast address (RFC 6890). */
const SPECIAL_IPV4 = /^(?:0\.|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255$)/;

/** Whether any of the networks holds the address. IPv4 that arrives as `::ffff:a.b.c.d` counts as IPv4. */
export function isWithin(address: string, networks: readonly Cidr[]): boolean {
  if (networks.length === 0) return false;
  const parsed = parseAddress(address);
  return (
    parsed !== undefined &&
    networks.some(
      (network) => network.address.kind() === parsed.kind() && parsed.match(network.address, network.prefix),
    )
  );
}

/** An address in its canonical text (IPv4-mapped IPv6 as IPv4), or undefined when the text is not one. */
export function canonicalAddress(text: string): string | undefined {
  // Most addresses are of this kind, and there are a hundred thousand of them.
  if (IPV4.test(text)) return text;
  return parseAddress(text)?.toString();
}

/** What no endpoint may be, wherever it was read: loopback, link-local, unspecified, multicast, broadcast. */
export function isSpecialAddress(address: string): boolean {
  if (IPV4.test(address)) return SPECIAL_IPV4.test(address);
  const range = parseAddress(address)?.range();
  return range === undefined || ['loopback', 'linkLocal', 'unspecified', 'multicast', 'broadcast'].includes(range);
}

function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!text.includes(':') || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}
