import { formatAddressWords, parseUnmappedAddressWords } from '../match/address.ts';

/** The host and port that a client asks for, from a Host field, `:authority`, or a request target in absolute-form. */
export interface Authority {
  /** In lower case and without a trailing dot; an IPv6 address in brackets (RFC 5952); empty if the client named no host. */
  readonly host: string;
  /** Undefined if the client named no port. */
  readonly port: number | undefined;
  /** The value of the Host that the endpoint gets. The same string as the input if nothing had to change. */
  readonly text: string;
}

export type AuthorityRefusal = 'invalid-host' | 'userinfo';

/** The longest host name (RFC 1035 §2.3.4, without the trailing dot). */
const MAX_HOST_LENGTH = 253;
const MAX_PORT = 65_535;
const NO_AUTHORITY: Authority = Object.freeze({ host: '', port: undefined, text: '' });

const DOT = 0x2e;
const COLON = 0x3a;
const BRACKET = 0x5b;

/**
 * Returns the authority that a text such as `Shop.example.com:8080` or `[::1]` stands for.
 *
 * - RFC 3986 §6.2.2.1: the host is compared in lower case.
 * - RFC 1034 §3.1: one trailing dot marks a complete name, and is removed; a name with any other empty label is refused.
 * - RFC 3986 §3.2.2: brackets hold an IPv6 address, without a zone; a later version of IP is refused.
 * - RFC 3986 §3.2.3: an empty port is the same as no port, and leading zeros of a port are removed.
 * - RFC 9110 §4.2.4: userinfo is refused.
 * - RFC 9112 §3.2: an empty Host is valid, and means that the URI has no authority. Then `host` is empty.
 *
 * Refuses percent-encodings and `!$&'()*+,;=~`, which RFC 3986 permits in names, because no DNS name has these characters. Permits `_`.
 */
export function parseAuthority(text: string): Authority | AuthorityRefusal {
  if (text === '') return NO_AUTHORITY;
  const authority = text.charCodeAt(0) === BRACKET ? parseIpv6Authority(text) : parseNameAuthority(text);
  if (authority !== undefined) return authority;
  return text.includes('@') ? 'userinfo' : 'invalid-host';
}

/** Whether two authorities name the same host and port. A missing port is `defaultPort` (RFC 9110 §4.2.3). */
export function isSameAuthority(a: Authority, b: Authority, defaultPort: number): boolean {
  return a.host === b.host && (a.port ?? defaultPort) === (b.port ?? defaultPort);
}

function parseNameAuthority(text: string): Authority | undefined {
  let end = 0;
  let hasUpperCase = false;
  let labelStart = 0;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === COLON) break;
    if (code === DOT) {
      if (end === labelStart) return undefined;
      labelStart = end + 1;
      continue;
    }
    const kind = code < 128 ? (NAME_CHARACTERS[code] as number) : FORBIDDEN;
    if (kind === FORBIDDEN) return undefined;
    if (kind === UPPER_CASE) hasUpperCase = true;
  }
  const nameEnd = end > 0 && labelStart === end ? end - 1 : end;
  if (nameEnd === 0 || nameEnd > MAX_HOST_LENGTH) return undefined;
  const name = text.slice(0, nameEnd);
  const host = hasUpperCase ? name.toLowerCase() : name;
  return withPort(text, { host, end, isUnchanged: !hasUpperCase && nameEnd === end });
}

/** The characters of an IPv6 address. The parser of addresses would also accept a zone (`%eth0`), which has no meaning outside a node. */
const IPV6_LITERAL = /^\[([0-9a-f:.]+)\]/i;
const words = new Uint32Array(4);

function parseIpv6Authority(text: string): Authority | undefined {
  const literal = IPV6_LITERAL.exec(text);
  if (literal === null || parseUnmappedAddressWords(literal[1] as string, words) !== 'ipv6') return undefined;
  const host = `[${formatAddressWords('ipv6', words)}]`;
  return withPort(text, { host, end: literal[0].length, isUnchanged: host === literal[0] });
}

interface ParsedHost {
  readonly host: string;
  /** Where the host ends in the text: at the end of the text, or at the colon before the port. */
  readonly end: number;
  readonly isUnchanged: boolean;
}

function withPort(text: string, { host, end, isUnchanged }: ParsedHost): Authority | undefined {
  if (end === text.length) return { host, port: undefined, text: isUnchanged ? text : host };
  const digits = text.length - end - 1;
  if (text.charCodeAt(end) !== COLON || digits > 5) return undefined;
  if (digits === 0) return { host, port: undefined, text: host };
  let port = 0;
  for (let at = end + 1; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    port = port * 10 + digit;
  }
  if (port === 0 || port > MAX_PORT) return undefined;
  const hasLeadingZero = text.charCodeAt(end + 1) === 0x30;
  return { host, port, text: isUnchanged && !hasLeadingZero ? text : `${host}:${port}` };
}

const FORBIDDEN = 0;
const ALLOWED = 1;
const UPPER_CASE = 2;
/** The characters of host names by code. */
const NAME_CHARACTERS: Uint8Array = new Uint8Array(128);
for (const character of '-_0123456789abcdefghijklmnopqrstuvwxyz') {
  NAME_CHARACTERS[character.charCodeAt(0)] = ALLOWED;
}
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') NAME_CHARACTERS[character.charCodeAt(0)] = UPPER_CASE;
