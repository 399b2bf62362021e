import ipaddr from 'ipaddr.js';
import { type AddressFamily, formatAddressWords, ipv6Bytes, parseUnmappedAddressWords } from './address.ts';

// Networks and addresses as text. What has to be fast for each client is in networks.ts.

/** A network of addresses: the canonical text, and its two parts. */
export interface Cidr {
  readonly text: string;
  readonly address: string;
  readonly prefix: number;
}

/** The family of a network, and how many of its bits count. */
export interface NetworkPrefix {
  readonly family: AddressFamily;
  readonly prefix: number;
}

/**
 * A CIDR such as `10.0.0.0/8` or `fd00::/8`; blanks around it are allowed, as the API server allows them.
 * Undefined when it is not one. Host bits are cleared, so equal networks have equal text.
 */
export function parseCidr(text: string): Cidr | undefined {
  const network = parseNetworkWords(text, words);
  if (network === undefined) return undefined;
  const address = formatAddressWords(network.family, words);
  return { text: `${address}/${network.prefix}`, address, prefix: network.prefix };
}

/** `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`. Tenants write these: a longer text must cost nothing. */
const MAX_CIDR_LENGTH = 49;
/** Numbers that some programs read as octal: they mean different addresses to different programs. */
const OCTAL_OCTET = /[.:]0[0-9]+\.|\.0[0-9]/;

/**
 * Its first address into `words` (four), and what it is; undefined as `parseCidr`. IPv4 in IPv6 stays IPv6: no client has such an
 * address.
 */
export function parseNetworkWords(text: string, words: Uint32Array): NetworkPrefix | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CIDR_LENGTH) return undefined;
  const slash = trimmed.indexOf('/');
  const prefix = parsePrefix(trimmed, slash);
  if (prefix < 0) return undefined;
  const address = trimmed.slice(0, slash);
  // A network has no zone.
  const family = address.includes('%') ? undefined : parseUnmappedAddressWords(address, words);
  if (family === undefined || prefix > (family === 'ipv4' ? 32 : 128)) return undefined;
  if (family === 'ipv6' && address.includes('.') && OCTAL_OCTET.test(address)) return undefined;
  clearHostBits(words, prefix);
  return { family, prefix };
}

/** Of one to three digits behind the slash; -1: it is none. */
function parsePrefix(text: string, slash: number): number {
  const digits = text.length - slash - 1;
  if (slash < 0 || digits < 1 || digits > 3) return -1;
  let prefix = 0;
  for (let at = slash + 1; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    prefix = prefix * 10 + digit;
  }
  return prefix;
}

/** Of an IPv4 address only the first word counts. */
function clearHostBits(words: Uint32Array, prefix: number): void {
  for (let word = 0; word < 4; word += 1) words[word] = (words[word] as number) & networkMask(prefix - word * 32);
}

/** Of a word, of which so many bits or more count; none when it is negative. */
export function networkMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - bits)) >>> 0;
}

const words = new Uint32Array(4);
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
/** Canonical: four decimal numbers up to 255 without leading zeros. */
const IPV4: RegExp = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
/** 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 and the broadcast address (RFC 6890). */
const SPECIAL_IPV4 = /^(?:0\.|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255$)/;

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
