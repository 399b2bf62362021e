import ipaddr from 'ipaddr.js';

// Parses addresses into 32-bit words without allocating memory, because every connection looks up its client's address.

/** `ipv4`: the address is the first word. `ipv6`: the address is all four words, the highest first. */
export type AddressFamily = 'ipv4' | 'ipv6';

/**
 * Parses an address into `words` (length four) and returns its family; undefined if the text is not an address. An IPv4-mapped IPv6
 * address (`::ffff:a.b.c.d`) becomes an IPv4 address.
 */
export function parseAddressWords(text: string, words: Uint32Array): AddressFamily | undefined {
  const family = parseUnmappedAddressWords(text, words);
  if (family !== 'ipv6' || words[0] !== 0 || words[1] !== 0 || words[2] !== 0xffff) return family;
  words[0] = words[3] as number;
  return 'ipv4';
}

/** As `parseAddressWords`, but an IPv4-mapped IPv6 address stays an IPv6 address. */
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
 * Returns the number of an IPv4 address in dotted decimal; -1 for any other text. Leading zeros are rejected, because some programs
 * read them as octal.
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

/** Parses the forms 1 and 2 of RFC 4291, section 2.2, which kernels and people use; false for any other text. */
function parseIpv6Groups(text: string, words: Uint32Array): boolean {
  groups.fill(0);
  let count = 0;
  let gap = -1;
  let at = 0;
  while (at < text.length) {
    if (text.charCodeAt(at) === COLON) {
      // A single colon is invalid at the start. Elsewhere the colon after the last group was consumed, so this is the second of `::`.
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

/** Parses the rare forms: with a trailing IPv4 address, or with a zone. */
function parseIpv6WithLibrary(text: string, words: Uint32Array): boolean {
  if (!ipaddr.IPv6.isValid(text)) return false;
  const { parts } = ipaddr.IPv6.parse(text);
  for (let word = 0; word < 4; word += 1) {
    words[word] = (parts[word * 2] as number) * 0x1_0000 + (parts[word * 2 + 1] as number);
  }
  return true;
}

/** The 16 bytes of an IPv6 address in network order. The text must be an IPv6 address without a zone. */
export function ipv6Bytes(text: string): Uint8Array {
  const words = new Uint32Array(4);
  parseUnmappedAddressWords(text, words);
  const bytes = new DataView(new ArrayBuffer(16));
  for (const [index, word] of words.entries()) bytes.setUint32(index * 4, word);
  return new Uint8Array(bytes.buffer);
}
