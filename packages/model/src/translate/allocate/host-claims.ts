// Decides which Services may have the same host of a shared port. Between tenants, a host has one owner. Within a namespace, several
// Services share a host by path prefix.
import { PLAIN_HTTP_PORT } from '../../match/route.ts';
import { portText, quote } from '../../message-text.ts';
import type { ServiceSettings } from '../../settings/service-settings.ts';
import type { ServicePort } from '../../snapshot.ts';

/** The settings that decide at which ports, and with which other Services, a Service may share hosts. */
export type SharingSettings = Pick<ServiceSettings, 'hosts' | 'pathPrefix' | 'httpPorts' | 'tls' | 'tlsPassthrough'>;

/** What a Service claims of each of its hosts on one shared port. */
export interface HostClaim {
  readonly namespace: string;
  /** The path prefix of the requests that the Service gets, `/` for all paths; null if the proxies read no HTTP requests at the port. */
  readonly pathPrefix: string | null;
  /** The Secret with the CAs of client certificates at the port; null if clients need none, undefined if TLS is not terminated there. */
  readonly clientCaSecret: string | null | undefined;
}

/**
 * Reports whether the proxies can tell at this port which host a client asks for: by the server name of TLS (RFC 6066 §3), or by the Host of
 * an HTTP request (RFC 9112 §3.2).
 */
export function canSelectByHost(
  { port }: Pick<ServicePort, 'port'>,
  { tls, tlsPassthrough, httpPorts }: Omit<SharingSettings, 'hosts'>,
): boolean {
  if (httpPorts?.includes(port) === true) return true;
  return tls === undefined
    ? tlsPassthrough && port !== PLAIN_HTTP_PORT
    : tls.ports.some((tlsPort) => tlsPort.port === port);
}

export function hostClaimFor(
  { port }: Pick<ServicePort, 'port'>,
  namespace: string,
  { pathPrefix = '/', httpPorts, tls }: SharingSettings,
): HostClaim {
  const isTerminated = tls?.ports.some((tlsPort) => tlsPort.port === port) === true;
  return {
    namespace,
    pathPrefix: httpPorts?.includes(port) === true ? pathPrefix : null,
    clientCaSecret: isTerminated ? tls.clientCaSecret : undefined,
  };
}

export function isSameClaim(a: HostClaim, b: HostClaim): boolean {
  return a.namespace === b.namespace && a.pathPrefix === b.pathPrefix && a.clientCaSecret === b.clientCaSecret;
}

/** Why two claims exclude each other, in the order in which `claimConflictBetween` checks the reasons. */
export const CLAIM_CONFLICTS = ['other-namespace', 'no-http', 'other-client-ca', 'same-path'] as const;
export type ClaimConflict = (typeof CLAIM_CONFLICTS)[number];

/** Returns why two Services cannot have the same host of a port; undefined if they can share the host by path prefix. */
export function claimConflictBetween(a: HostClaim, b: HostClaim): ClaimConflict | undefined {
  if (a.namespace !== b.namespace) return 'other-namespace';
  if (a.pathPrefix === null || b.pathPrefix === null) return 'no-http';
  // The proxy asks for the client's certificate before the client sends a path. The Services may have different certificates for the host,
  // so that their owner can change the certificates of one Service after the other.
  if (a.clientCaSecret !== b.clientCaSecret) return 'other-client-ca';
  return a.pathPrefix === b.pathPrefix ? 'same-path' : undefined;
}

/**
 * Returns what the owner of a Service can change, so that the Service gets a host of `port` that other Services of the same tenant own.
 */
export function claimAdvice(conflict: ClaimConflict, port: ServicePort, { pathPrefix }: HostClaim): string {
  switch (conflict) {
    case 'other-namespace':
      return 'only Services of one namespace can share a host; use another host, or another port';
    case 'no-http':
      return `to share the host by path, set appProtocol: http at port ${portText(port)} of both Services, without weir.dev/tls-passthrough, and another weir.dev/path-prefix for each; or use another host, or another port`;
    case 'other-client-ca':
      return `Services share a host by path only if all of them have weir.dev/tls-secret at port ${portText(port)}, or none, and if they have the same weir.dev/client-ca-secret, because the client shows its certificate before the path is known; use the same annotations, another host, or another port`;
    case 'same-path':
      return pathPrefix === '/'
        ? 'both Services ask for all paths; set weir.dev/path-prefix for one of them, or use another host, or another port'
        : `both Services have the path prefix ${quote(pathPrefix ?? '')}; set another weir.dev/path-prefix, or use another host, or another port`;
  }
}
