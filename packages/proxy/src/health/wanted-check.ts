import {
  type Endpoint,
  endpointKey,
  type HealthCheck,
  healthCheckName,
  type Route,
  type ServiceSettings,
} from '@weir/model/data-plane';

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
