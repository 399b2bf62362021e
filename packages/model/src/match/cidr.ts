import ipaddr from 'ipaddr.js';
import { type AddressFamily, formatAddressWords, parseUnmappedAddressWords } from './address.ts';

// Networks and addresses as text. The look-up of each client's address is in networks.ts.

export interface Cidr {
  /** Canonical: equal networks have equal text. */
  readonly text: string;
  readonly address: string;
  readonly prefix: number;
}

/** The family of a network, and the length of its prefix in bits. */
export interface NetworkPrefix {
  readonly family: AddressFamily;
  readonly prefix: number;
}

/**
 * Parses a CIDR such as `10.0.0.0/8` or `fd00::/8` and clears its host bits; undefined if the text is not a CIDR. Blanks around the
 * text are allowed, as the API server allows them.
 */
export function parseCidr(text: string): Cidr | undefined {
  const network = parseNetworkWords(text, words);
  if (network === undefined) return undefined;
  const address = formatAddressWords(network.family, words);
  return { text: `${address}/${network.prefix}`, address, prefix: network.prefix };
}

/** The longest text that is parsed: the length of `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`. */
const MAX_CIDR_LENGTH = 49;
/** Numbers with leading zeros, which some programs read as octal. */
const OCTAL_OCTET = /[.:]0[0-9]+\.|\.0[0-9]/;

/**
 * Parses a CIDR as `parseCidr` does, and writes its first address into `words` (length four). An IPv4-mapped IPv6 network stays an
 * IPv6 network, which contains no client, because addresses of clients are unmapped.
 */
export function parseNetworkWords(text: string, words: Uint32Array): NetworkPrefix | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CIDR_LENGTH) return undefined;
  const slash = trimmed.indexOf('/');
  const prefix = parsePrefix(trimmed, slash);
  if (prefix < 0) return undefined;
  const address = trimmed.slice(0, slash);
  // A network has no zone identifier.
  const family = address.includes('%') ? undefined : parseUnmappedAddressWords(address, words);
  if (family === undefined || prefix > (family === 'ipv4' ? 32 : 128)) return undefined;
  if (family === 'ipv6' && address.includes('.') && OCTAL_OCTET.test(address)) return undefined;
  clearHostBits(words, prefix);
  return { family, prefix };
}

/** The number after the slash, of one to three digits; -1 if there is none. */
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

/** Clears all bits after the prefix. For IPv4 only the first word matters. */
function clearHostBits(words: Uint32Array, prefix: number): void {
  for (let word = 0; word < 4; word += 1) words[word] = (words[word] as number) & networkMask(prefix - word * 32);
}

/** The mask of the highest `bits` bits of a 32-bit word; 0 if `bits` is negative, all ones if it is above 32. */
export function networkMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - bits)) >>> 0;
}

const words = new Uint32Array(4);
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
/** Canonical dotted decimal: four numbers up to 255 without leading zeros. */
const IPV4: RegExp = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
/** 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 and the broadcast address (RFC 6890). */
const SPECIAL_IPV4 = /^(?:0\.|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255$)/;

/** Returns the canonical text of an address (IPv4-mapped IPv6 as IPv4); undefined if the text is not an address. */
export function canonicalAddress(text: string): string | undefined {
  // Most of up to 100,000 endpoint addresses take this fast path.
  if (IPV4.test(text)) return text;
  return parseAddress(text)?.toString();
}

/**
 * Whether an address is forbidden for every endpoint: loopback, link-local, unspecified, multicast, broadcast, or text that is not
 * an address.
 */
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
 * Returns the key by which limits count clients: an IPv4 address, or the /64 network of an IPv6 address, because one host can use
 * every address of its /64. `::ffff:a.b.c.d` counts as IPv4. A text that is not an address is its own key.
 */
export function clientKeyFor(address: string): string {
  if (!address.includes(':')) return address;
  const canonical = canonicalAddress(address);
  if (canonical === undefined || !canonical.includes(':')) return canonical ?? address;
  parseUnmappedAddressWords(canonical, words);
  const [high = 0, low = 0] = words;
  return [high >>> 16, high & 0xffff, low >>> 16, low & 0xffff].map((group) => group.toString(16)).join(':');
}
