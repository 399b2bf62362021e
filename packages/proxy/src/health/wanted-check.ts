import { type Endpoint, endpointKey, type HealthCheck, type Route, type ServiceSettings } from '@weir/model/data-plane';

/** One endpoint to be checked in one way. */
export interface WantedCheck {
  /** Equal for checks that one answer serves. */
  readonly key: string;
  readonly endpoint: Endpoint;
  readonly check: Exclude<HealthCheck, { readonly kind: 'off' }>;
  /** What a connection to the endpoint begins with. */
  readonly proxyProtocol: ServiceSettings['proxyProtocol'];
}

/** By `endpointKey`: the checks that the Service asks for. None for UDP: nobody could tell silence from health. */
export function wantedChecksFor({ settings, listener, endpoints }: Route): ReadonlyMap<string, WantedCheck> {
  const { healthCheck: check, proxyProtocol } = settings;
  const wanted = new Map<string, WantedCheck>();
  if (check.kind === 'off' || listener.protocol !== 'TCP') return wanted;
  const path = check.kind === 'http' ? check.path : '';
  const { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold } = check;
  const way = [check.kind, proxyProtocol, intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold, path].join(' ');
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    wanted.set(key, { key: `${key} ${way}`, endpoint, check, proxyProtocol });
  }
  return wanted;
}
