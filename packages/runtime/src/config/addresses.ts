import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

const HOST_NAME_PATTERN = /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/i;

/**
 * Parses `127.0.0.1:8687`, `[::1]:8687` or `name:8687`. Returns undefined for other text. Port 0 (any free port) is
 * allowed. An IPv4 address may also have brackets, because a chart that inserts `status.hostIP` does not know the
 * address family.
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

/** Formats a host and a port as `HOST:PORT`, with brackets around an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Reports whether `host` is an IPv4 address or a host name. Refuses a name whose last label is a number, because such a
 * name is a mistyped address (RFC 3696, section 2) and would fail later in DNS.
 */
function isHostName(host: string): boolean {
  return isIPv4(host) || (host.length <= 253 && HOST_NAME_PATTERN.test(host) && !/(?:^|\.)\d+$/.test(host));
}

const LOOPBACK_ADDRESSES = new BlockList();

LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');

LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');

/** Reports whether `host` is a loopback address or `localhost`. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true;
  const family = isIP(host);
  return family !== 0 && LOOPBACK_ADDRESSES.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Describes the format that `isProxyUrl` accepts, for error messages. */
export const PROXY_URL_FORMAT = 'http://, https:// or socks5://[USER:PASSWORD@]HOST[:PORT]';

/** Reports whether `text` is the URL of an HTTP or SOCKS proxy. */
export function isProxyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return /^(https?|socks(4a?|5h?)?):$/.test(protocol) && hostname !== '';
}

/**
 * Removes passwords and the query from a URL, so that the URL can be printed. Searches the text for the last `@`
 * instead of parsing the URL: if a password has an unescaped `#` or `/`, a parser would put parts of the password into
 * the host, path or fragment.
 */
export function redactUrl(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  const at = rest.lastIndexOf('@');
  if (at !== -1)
    return `${scheme}${redactCredentials(rest.slice(0, at))}[redacted]@${withoutQuery(rest.slice(at + 1))}`;
  // In a valid URL or list of hosts without `@`, only the query can contain a password. Any other text may contain a password anywhere.
  if (scheme === '') return parseHostPort(rest) === undefined ? '[redacted]' : rest;
  return URL.canParse(text) || isHostList(rest) ? `${scheme}${withoutQuery(rest)}` : `${scheme}[redacted]`;
}

/**
 * Returns `name:` for `name:password`, because a user needs the name to understand an ACL error. Returns '' for text
 * without a colon, because the text may itself be the password.
 */
function redactCredentials(credentials: string): string {
  const name = /^([\w.-]*):/.exec(credentials)?.[1];
  return name === undefined ? '' : `${name}:`;
}

/** Reports whether `rest` begins with several hosts, such as `a:1,b:2/0`. A URL parser refuses such a list. */
function isHostList(rest: string): boolean {
  const hosts = /^[^/?#]*/.exec(rest)?.[0].split(',') ?? [];
  return hosts.length > 1 && hosts.every((host) => parseHostPort(host) !== undefined);
}

function withoutQuery(text: string): string {
  return text.replace(/[?#].*$/s, '');
}
