import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

const HOST_NAME_PATTERN = /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/i;

/**
 * Reads `127.0.0.1:8687`, `[::1]:8687` or `name:8687`; port 0 (any free one) is allowed. Undefined for anything else. Brackets may be
 * around any IP address: whoever puts the text together may not know which kind it is (Kubernetes' `status.hostIP`).
 */
export function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain, digits] = match;
  const port = Number(digits);
  const host = bracketed ?? plain ?? '';
  const isHost = bracketed === undefined ? isHostName(host) : isIP(host) !== 0;
  return isHost && port <= 65_535 ? Object.freeze({ host, port }) : undefined;
}

/** The way back, with brackets around an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A name whose last label is a number is a mistyped address (RFC 3696, section 2), and would only fail later, in DNS. */
function isHostName(host: string): boolean {
  return isIPv4(host) || (host.length <= 253 && HOST_NAME_PATTERN.test(host) && !/(?:^|\.)\d+$/.test(host));
}

const LOOPBACK_ADDRESSES = new BlockList();

LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');

LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');

/** Whether only this machine can connect to `host`, an address or `localhost`. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true;
  const family = isIP(host);
  return family !== 0 && LOOPBACK_ADDRESSES.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** What `isProxyUrl` takes, for messages. */
export const PROXY_URL_FORMAT = 'http://, https:// or socks5://[USER:PASSWORD@]HOST[:PORT]';

/** Whether it is a proxy that requests can be sent through. */
export function isProxyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return /^(https?|socks(4a?|5h?)?):$/.test(protocol) && hostname !== '';
}

/**
 * What of a URL may be printed. It works on the text, because what is to be printed is often not a valid URL (a password with `#`
 * or `/` that nobody escaped), and then a parser would put parts of the password into host, path or fragment.
 */
export function redactUrl(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  const at = rest.lastIndexOf('@');
  if (at !== -1)
    return `${scheme}${redactCredentials(rest.slice(0, at))}[redacted]@${withoutQuery(rest.slice(at + 1))}`;
  // Without `@` a valid URL holds no password before the query; anything else may be a password that lost its place.
  if (scheme === '') return parseHostPort(rest) === undefined ? '[redacted]' : rest;
  return URL.canParse(text) || isHostList(rest) ? `${scheme}${withoutQuery(rest)}` : `${scheme}[redacted]`;
}

/** `name:password` keeps the name, which an ACL error needs; a text without colon may itself be the password. */
function redactCredentials(credentials: string): string {
  const name = /^([\w.-]*):/.exec(credentials)?.[1];
  return name === undefined ? '' : `${name}:`;
}

/** Several hosts, which no URL has: `a:1,b:2/0`. */
function isHostList(rest: string): boolean {
  const hosts = /^[^/?#]*/.exec(rest)?.[0].split(',') ?? [];
  return hosts.length > 1 && hosts.every((host) => parseHostPort(host) !== undefined);
}

function withoutQuery(text: string): string {
  return text.replace(/[?#].*$/s, '');
}
