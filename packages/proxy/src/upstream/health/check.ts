import { connect, type Socket } from 'node:net';
import {
  type Endpoint,
  endpointKey,
  type HealthCheckSettings,
  healthCheckName,
  type Route,
  type ServiceSettings,
} from '@weir/model/data-plane';
import { writeLocalProxyHeader } from '../../protocol/write-proxy-header.ts';

/** A check of one endpoint with one set of settings. */
export interface WantedCheck {
  /** Checks with equal keys are made once and share their result. */
  readonly key: string;
  readonly endpoint: Endpoint;
  readonly check: Exclude<HealthCheckSettings, { readonly kind: 'off' }>;
  /** The PROXY header that the endpoint expects, if any. */
  readonly proxyProtocol: ServiceSettings['proxyProtocol'];
  /**
   * The server name and host of an HTTPS check: the Service's first host without a wildcard, or null for the endpoint's
   * address.
   */
  readonly host: string | null;
}

/** Returns the checks that the Service asks for, by `endpointKey`. UDP has none: silence proves nothing. */
export function wantedChecksFor({ settings, listener, endpoints }: Route): ReadonlyMap<string, WantedCheck> {
  const { healthCheck: check, proxyProtocol, hosts } = settings;
  const wanted = new Map<string, WantedCheck>();
  if (check.kind === 'off' || listener.protocol !== 'TCP') return wanted;
  const path = check.kind === 'http' ? check.path : '';
  const host = healthCheckName(check) === 'https' ? (hosts.find((each) => !each.startsWith('*.')) ?? null) : null;
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold } = check;
  const timing = [intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold];
  const settingsKey = [healthCheckName(check), proxyProtocol, ...timing, host, path].join(' ');
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    wanted.set(key, { key: `${key} ${settingsKey}`, endpoint, check, proxyProtocol, host });
  }
  return wanted;
}

export type HealthCheckResult = { readonly kind: 'good' } | { readonly kind: 'bad'; readonly why: string };
export const PASSED: HealthCheckResult = { kind: 'good' };

/** Returns a failed result. `why` completes "its check fails: …". */
export function failed(why: string): HealthCheckResult {
  return { kind: 'bad', why };
}

/** Returns a failed result with the code of the error, because it tells an operator more than the message. */
export function failedWith(thrown: unknown): HealthCheckResult {
  const { code, message } = thrown as Partial<NodeJS.ErrnoException>;
  return failed((typeof code === 'string' ? code : String(message)).slice(0, 80));
}

/** Connects to the endpoint and sends the PROXY header that it expects, of kind LOCAL (without a client). */
export function connectForCheck({ endpoint, proxyProtocol }: WantedCheck): Socket {
  const socket = connect({ host: endpoint.address, port: endpoint.port });
  // The endpoint may reset the connection at any time, also after the result is known.
  socket.on('error', () => undefined);
  if (proxyProtocol !== null) socket.write(writeLocalProxyHeader(proxyProtocol));
  return socket;
}

/** Closes by RST: after a FIN, TIME_WAIT would hold a local port for a minute. */
export function closeCheckSocket(socket: Socket): void {
  if (socket.connecting || socket.destroyed) socket.destroy();
  else socket.resetAndDestroy();
}
