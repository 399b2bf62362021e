// Formats of names and numbers in Kubernetes objects. Objects in files are checked as strictly as an API server would check them.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { parseCidr, parseHost } from '@weir/model';
import type { IntegerRange, TextFormat } from './fields.ts';

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** RFC 1123 label. */
export const DNS_LABEL: TextFormat = {
  allowed: 'lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
  matches: (text) => LABEL.test(text),
};

/** RFC 1123 subdomain. */
export const DNS_SUBDOMAIN: TextFormat = {
  allowed: 'lower-case letters, digits, "-" and ".", at most 253, beginning and ending with a letter or digit',
  matches: (text) => text.length <= 253 && SUBDOMAIN.test(text),
};

/** A label value that is not empty; tenants and pools are named like this. */
export const LABEL_TEXT: TextFormat = {
  allowed: 'letters, digits, "-", "_" and ".", at most 63, beginning and ending with a letter or digit',
  matches: (text) => text !== '' && LABEL_VALUE.test(text),
};

/** `name` or `prefix/name`. */
export const LABEL_KEY: TextFormat = {
  allowed: 'the key of a label, such as team or example.com/team',
  matches(text) {
    const slash = text.indexOf('/');
    const prefix = slash === -1 ? null : text.slice(0, slash);
    return LABEL_NAME.test(text.slice(slash + 1)) && (prefix === null || DNS_SUBDOMAIN.matches(prefix));
  },
};

export const IP_ADDRESS: TextFormat = { allowed: 'an IP address', matches: (text) => isIP(text) !== 0 };
export const IPV4_ADDRESS: TextFormat = { allowed: 'an IPv4 address', matches: isIPv4 };
export const IPV6_ADDRESS: TextFormat = { allowed: 'an IPv6 address', matches: isIPv6 };

export const CIDR: TextFormat = {
  allowed: 'a CIDR such as 10.0.0.0/8 or fd00::/8',
  matches: (text) => parseCidr(text) !== undefined,
};

export const HOST: TextFormat = {
  allowed:
    'a host such as shop.example.com, or *.shop.example.com for all its subdomains; write international names in punycode (xn--…)',
  matches: (text) => parseHost(text) !== undefined,
};

export const PORT: IntegerRange = { from: 1, to: 65_535 };
export const COUNT: IntegerRange = { from: 0, to: Number.MAX_SAFE_INTEGER };

const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Returns milliseconds since the epoch for a time such as `2026-07-01T12:00:00Z` (RFC 3339); undefined for any other text. */
export function parseTimestamp(text: string): number | undefined {
  const ms = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

export const TIMESTAMP: TextFormat = {
  allowed: 'a time such as 2026-07-01T12:00:00Z',
  matches: (text) => parseTimestamp(text) !== undefined,
};
