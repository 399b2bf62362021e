import { isIP, isIPv4, isIPv6 } from 'node:net';

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
