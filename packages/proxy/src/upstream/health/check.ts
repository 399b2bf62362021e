import { connect, type Socket } from 'node:net';
import {
  type Endpoint,
  endpointKey,
  type HealthCheckSettings,
  healthCheckName,
  type Route,
  type ServiceSettings,
  servicePortOf,
} from '@weir/model/data-plane';
import { writeLocalProxyHeader } from '../../protocol/write-proxy-header.ts';

/** A health check of one endpoint with one set of settings. */
export interface WantedCheck {
  /** Checks with the same key run once and share the result. */
  readonly key: string;
  readonly endpoint: Endpoint;
  readonly check: Exclude<HealthCheckSettings, { readonly kind: 'off' }>;
  /** The version of the PROXY header that the endpoint expects, or null if it expects none. */
  readonly proxyProtocol: ServiceSettings['proxyProtocol'];
  readonly overTls: boolean;
  /**
   * The server name and `Host` of a check over TLS. If null, the check sends no server name, and the `Host` is the
   * endpoint's address.
   */
  readonly host: string | null;
}

/**
 * Returns the checks that the Service asks for, by `endpointKey`. Returns no checks for UDP, because a UDP endpoint
 * that does not answer may still be healthy.
 */
export function wantedChecksFor({ settings, listener, endpoints }: Route): ReadonlyMap<string, WantedCheck> {
  const { healthCheck: check, proxyProtocol } = settings;
  const wanted = new Map<string, WantedCheck>();
  if (check.kind === 'off' || listener.protocol !== 'TCP') return wanted;
  const target = check.kind === 'http' ? check.path : (check.grpcService ?? '');
  const { overTls, host } = tlsOf(settings, servicePortOf(listener));
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold } = check;
  const timing = [intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold];
  const settingsKey = [healthCheckName(check), proxyProtocol, ...timing, overTls, host, target].join(' ');
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    wanted.set(key, { key: `${key} ${settingsKey}`, endpoint, check, proxyProtocol, overTls, host });
  }
  return wanted;
}

/**
 * Decides whether checks at a port use TLS. An HTTPS check has the Service's first host without a wildcard as server
 * name. A gRPC check uses TLS with the same server name as clients' requests, if the endpoints of the port expect TLS.
 */
function tlsOf({ healthCheck, hosts, tls }: ServiceSettings, port: number): Pick<WantedCheck, 'overTls' | 'host'> {
  const name = healthCheckName(healthCheck);
  if (name === 'https') return { overTls: true, host: hosts.find((each) => !each.startsWith('*.')) ?? null };
  const isEncrypted = name === 'grpc' && tls?.backend?.ports.includes(port) === true;
  return { overTls: isEncrypted, host: isEncrypted ? (tls?.backend?.serverName ?? null) : null };
}

export type HealthCheckResult = { readonly kind: 'good' } | { readonly kind: 'bad'; readonly why: string };
export const PASSED: HealthCheckResult = { kind: 'good' };

/** Returns a failed result. `why` completes "its check fails: …". */
export function failed(why: string): HealthCheckResult {
  return { kind: 'bad', why };
}

/**
 * Returns a failed result with the code of the error, because the code is more useful to an operator than the message.
 */
export function failedWith(thrown: unknown): HealthCheckResult {
  const { code, message } = thrown as Partial<NodeJS.ErrnoException>;
  return failed((typeof code === 'string' ? code : String(message)).slice(0, 80));
}

/**
 * Connects to the endpoint. If the endpoint expects a PROXY header, sends a header of kind LOCAL, because there is no
 * client.
 */
export function connectForCheck({ endpoint, proxyProtocol }: WantedCheck): Socket {
  const socket = connect({ host: endpoint.address, port: endpoint.port });
  // Ignored, because the endpoint may reset the connection at any time, even after the result is known.
  socket.on('error', () => undefined);
  if (proxyProtocol !== null) socket.write(writeLocalProxyHeader(proxyProtocol));
  return socket;
}

/** Closes the socket with RST. After a FIN, the connection in TIME_WAIT would occupy a local port for a minute. */
export function closeCheckSocket(socket: Socket): void {
  if (socket.connecting || socket.destroyed) socket.destroy();
  else socket.resetAndDestroy();
}
