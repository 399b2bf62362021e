// Parses and formats IP addresses and networks. Parsing the common forms of addresses allocates no memory, because every connection looks
// up the address of its client.
import ipaddr from 'ipaddr.js';

/** The family of an IP address. An `ipv4` address is one 32-bit word; an `ipv6` address is four words, the most significant word first. */
export type AddressFamily = 'ipv4' | 'ipv6';

/**
 * Writes an address into `words` (length four) and returns the address family; returns undefined if the text is not an address. An
 * IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) becomes an IPv4 address.
 */
export function parseAddressWords(text: string, words: Uint32Array): AddressFamily | undefined {
  const family = parseUnmappedAddressWords(text, words);
  if (family !== 'ipv6' || words[0] !== 0 || words[1] !== 0 || words[2] !== 0xffff) return family;
  words[0] = words[3] as number;
  return 'ipv4';
}

/** Does the same as `parseAddressWords`, except that an IPv4-mapped IPv6 address stays an IPv6 address. */
export function parseUnmappedAddressWords(text: string, words: Uint32Array): AddressFamily | undefined {
  const ipv4 = parseIpv4Number(text);
  if (ipv4 >= 0) {
    words[0] = ipv4;
    return 'ipv4';
  }
  if (!text.includes(':')) return undefined;
  return parseIpv6Groups(text, words) || parseIpv6WithLibrary(text, words) ? 'ipv6' : undefined;
}

/** Returns the canonical text of an address: dotted decimal for IPv4, RFC 5952 for IPv6. */
export function formatAddressWords(family: AddressFamily, words: Uint32Array): string {
  const [a = 0, b = 0, c = 0, d = 0] = words;
  if (family === 'ipv4') return `${a >>> 24}.${(a >>> 16) & 255}.${(a >>> 8) & 255}.${a & 255}`;
  return new ipaddr.IPv6([a, b, c, d].flatMap((word) => [word >>> 16, word & 0xffff])).toString();
}

const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;

/**
 * Returns the 32-bit number of an IPv4 address in dotted decimal, or -1 for any other text. Rejects numbers with leading zeros, because
 * some programs read them as octal.
 */
function parseIpv4Number(text: string): number {
  let address = 0;
  let octet = -1;
  let dots = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (octet < 0) return -1;
      address = address * 256 + octet;
      octet = -1;
      dots += 1;
    } else {
      const digit = code - ZERO;
      if (digit < 0 || digit > 9 || octet === 0) return -1;
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return -1;
    }
  }
  return dots === 3 && octet >= 0 ? address * 256 + octet : -1;
}

const groups = new Uint16Array(8);

/**
 * Parses the common forms of an IPv6 address: eight groups, or fewer groups with `::` (RFC 4291, section 2.2, forms 1 and 2). Returns false
 * for any other text.
 */
function parseIpv6Groups(text: string, words: Uint32Array): boolean {
  groups.fill(0);
  let count = 0;
  let gap = -1;
  let at = 0;
  while (at < text.length) {
    if (text.charCodeAt(at) === COLON) {
      // A colon at the start of the text must be the first colon of `::`. Elsewhere this colon is the second colon of `::`, because the
      // first colon was skipped together with the group before it.
      const isDouble = at === 0 ? text.charCodeAt(1) === COLON : true;
      if (!isDouble || gap >= 0) return false;
      gap = count;
      at += at === 0 ? 2 : 1;
      continue;
    }
    const from = at;
    let group = 0;
    for (; at < text.length && text.charCodeAt(at) !== COLON; at += 1) {
      const digit = hexDigit(text.charCodeAt(at));
      if (digit < 0 || at - from === 4) return false;
      group = group * 16 + digit;
    }
    if (count === 8) return false;
    groups[count] = group;
    count += 1;
    if (at === text.length) break;
    at += 1;
    if (at === text.length) return false;
  }
  if (gap < 0 ? count !== 8 : count > 7) return false;
  if (gap >= 0) {
    groups.copyWithin(8 - (count - gap), gap, count);
    groups.fill(0, gap, 8 - (count - gap));
  }
  for (let word = 0; word < 4; word += 1) {
    words[word] = (groups[word * 2] as number) * 0x1_0000 + (groups[word * 2 + 1] as number);
  }
  return true;
}

function hexDigit(code: number): number {
  if (code >= ZERO && code <= 0x39) return code - ZERO;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Parses the rare forms of an IPv6 address: with an IPv4 address at the end, or with a zone such as `%eth0`. */
function parseIpv6WithLibrary(text: string, words: Uint32Array): boolean {
  if (!ipaddr.IPv6.isValid(text)) return false;
  const { parts } = ipaddr.IPv6.parse(text);
  for (let word = 0; word < 4; word += 1) {
    words[word] = (parts[word * 2] as number) * 0x1_0000 + (parts[word * 2 + 1] as number);
  }
  return true;
}

/** Returns the 16 bytes of an IPv6 address in network order. The text must be an IPv6 address without a zone. */
export function ipv6Bytes(text: string): Uint8Array {
  const words = new Uint32Array(4);
  parseUnmappedAddressWords(text, words);
  const bytes = new DataView(new ArrayBuffer(16));
  for (const [index, word] of words.entries()) bytes.setUint32(index * 4, word);
  return new Uint8Array(bytes.buffer);
}

// An IP network. Use `compileNetworks` (networks.ts) to check whether networks contain an address.
export interface Cidr {
  /** The CIDR in canonical form: equal networks have equal text. */
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
 * Parses a CIDR such as `10.0.0.0/8` or `fd00::/8` and clears the host bits of its address; returns undefined if the text is not a CIDR.
 * Allows blanks around the text, because the API server allows them.
 */
export function parseCidr(text: string): Cidr | undefined {
  const network = parseNetworkWords(text, words);
  if (network === undefined) return undefined;
  const address = formatAddressWords(network.family, words);
  return { text: `${address}/${network.prefix}`, address, prefix: network.prefix };
}

/** The most characters of a CIDR: the length of `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`. */
const MAX_CIDR_LENGTH = 49;
/** Matches a number with leading zeros in the IPv4 part of an IPv6 address, because some programs read such a number as octal. */
const OCTAL_OCTET = /[.:]0[0-9]+\.|\.0[0-9]/;

/**
 * Writes the first address of a CIDR into `words` (length four) and returns the family and prefix length of the network; returns undefined
 * if the text is not a CIDR. An IPv4-mapped IPv6 network stays an IPv6 network. Such a network contains no client, because
 * `parseAddressWords` turns a mapped address into an IPv4 address.
 */
export function parseNetworkWords(text: string, words: Uint32Array): NetworkPrefix | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CIDR_LENGTH) return undefined;
  const slash = trimmed.indexOf('/');
  const prefix = parsePrefix(trimmed, slash);
  if (prefix < 0) return undefined;
  const address = trimmed.slice(0, slash);
  // The address of a network must not have a zone such as `%eth0`.
  const family = address.includes('%') ? undefined : parseUnmappedAddressWords(address, words);
  if (family === undefined || prefix > (family === 'ipv4' ? 32 : 128)) return undefined;
  if (family === 'ipv6' && address.includes('.') && OCTAL_OCTET.test(address)) return undefined;
  clearHostBits(words, prefix);
  return { family, prefix };
}

/** Returns the number of one to three digits after the slash; -1 if there is no such number. */
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

/** Clears all bits after the prefix. An IPv4 address uses only the first word. */
function clearHostBits(words: Uint32Array, prefix: number): void {
  for (let word = 0; word < 4; word += 1) words[word] = (words[word] as number) & networkMask(prefix - word * 32);
}

/** Returns a 32-bit mask whose highest `bits` bits are set: 0 if `bits` is negative, all ones if `bits` is above 32. */
export function networkMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - bits)) >>> 0;
}

const words = new Uint32Array(4);
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
/** Matches canonical dotted decimal: four numbers up to 255 without leading zeros. */
const IPV4: RegExp = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
/**
 * Matches the IPv4 addresses that no endpoint may have: 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 and the broadcast address (RFC
 * 6890).
 */
const SPECIAL_IPV4 = /^(?:0\.|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255$)/;

/** Returns the canonical text of an address (IPv4-mapped IPv6 as IPv4); undefined if the text is not an address. */
export function canonicalAddress(text: string): string | undefined {
  // Skips parsing for canonical IPv4 addresses, because most of up to 100,000 endpoint addresses of a fleet are canonical.
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
