import { connect, type Socket } from 'node:net';
import {
  type Endpoint,
  endpointKey,
  type HealthCheck,
  healthCheckName,
  type Route,
  type ServiceSettings,
} from '@weir/model/data-plane';
import { writeLocalProxyHeader } from '../../protocol/write-proxy-header.ts';

/** One endpoint to be checked in one way. */
export interface WantedCheck {
  /** Equal for checks that one answer serves. */
  readonly key: string;
  readonly endpoint: Endpoint;
  readonly check: Exclude<HealthCheck, { readonly kind: 'off' }>;
  /** What a connection to the endpoint begins with. */
  readonly proxyProtocol: ServiceSettings['proxyProtocol'];
  /** By which an endpoint that ends TLS is asked: the first host of the Service that is no wildcard; null: by its address. */
  readonly host: string | null;
}

/** By `endpointKey`: the checks that the Service asks for. None for UDP: nobody could tell silence from health. */
export function wantedChecksFor({ settings, listener, endpoints }: Route): ReadonlyMap<string, WantedCheck> {
  const { healthCheck: check, proxyProtocol, hosts } = settings;
  const wanted = new Map<string, WantedCheck>();
  if (check.kind === 'off' || listener.protocol !== 'TCP') return wanted;
  const path = check.kind === 'http' ? check.path : '';
  const host = healthCheckName(check) === 'https' ? (hosts.find((each) => !each.startsWith('*.')) ?? null) : null;
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold } = check;
  const timing = [intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold];
  const way = [healthCheckName(check), proxyProtocol, ...timing, host, path].join(' ');
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    wanted.set(key, { key: `${key} ${way}`, endpoint, check, proxyProtocol, host });
  }
  return wanted;
}

/** What one check found. */
export type CheckResult = { readonly kind: 'good' } | { readonly kind: 'bad'; readonly why: string };
export const PASSED: CheckResult = { kind: 'good' };

/** `why` completes "its check fails: …". */
export function failed(why: string): CheckResult {
  return { kind: 'bad', why };
}

/** For a socket or a parser that failed: its code says more to an operator than its sentence. */
export function failedWith(thrown: unknown): CheckResult {
  const { code, message } = thrown as Partial<NodeJS.ErrnoException>;
  return failed((typeof code === 'string' ? code : String(message)).slice(0, 80));
}

/** A connection to the endpoint, with the PROXY header that it expects; without a client behind it. */
export function connectForCheck({ endpoint, proxyProtocol }: WantedCheck): Socket {
  const socket = connect({ host: endpoint.address, port: endpoint.port });
  // Who is asked closes when it likes, also after the answer was taken.
  socket.on('error', () => undefined);
  if (proxyProtocol !== null) socket.write(writeLocalProxyHeader(proxyProtocol));
  return socket;
}

/** By RST: with FIN each check would leave a TIME_WAIT and hold a local port for a minute. */
export function closeCheckSocket(socket: Socket): void {
  if (socket.connecting || socket.destroyed) socket.destroy();
  else socket.resetAndDestroy();
}
