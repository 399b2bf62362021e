import type { Certificate } from '@weir/testkit';
import { BACKEND_NAMES, type BackendName, type BackendPorts } from './subject.ts';

/**
 * Limits of the tenant `bench`. `inactive`: too high to have an effect. `every-inactive`: also the limit of requests. `restrictive`: at
 * most a tenth of the load of a flood.
 */
export type LimitProfile = 'none' | 'inactive' | 'every-inactive' | 'restrictive';

export const RESTRICTIVE_LIMITS = {
  connections: 8,
  newConnectionsPerSecond: 200,
  inBitsPerSecond: '100M',
  outBitsPerSecond: '100M',
} as const;

const INACTIVE_LIMITS = {
  connections: '100000',
  newConnectionsPerSecond: '1000000',
  inBitsPerSecond: '400G',
  outBitsPerSecond: '400G',
} as const;
const INACTIVE_REQUESTS_PER_SECOND = '1000000';

/** The annotations of a Service, without the prefix `weir.dev/`, for limits that are too high to have an effect. */
export const INACTIVE_SERVICE_LIMITS: Readonly<Record<string, string>> = {
  'max-connections': INACTIVE_LIMITS.connections,
  'new-connections-per-second': INACTIVE_LIMITS.newConnectionsPerSecond,
  'in-bits-per-second': INACTIVE_LIMITS.inBitsPerSecond,
  'out-bits-per-second': INACTIVE_LIMITS.outBitsPerSecond,
};
/** The same for a Service of HTTP, which can also limit requests. */
export const INACTIVE_HTTP_SERVICE_LIMITS: Readonly<Record<string, string>> = {
  ...INACTIVE_SERVICE_LIMITS,
  'requests-per-second': INACTIVE_REQUESTS_PER_SECOND,
};

/** Values of `spec.limits` in the TenantPolicy, by profile. */
const LIMITS_BY_PROFILE = {
  inactive: INACTIVE_LIMITS,
  'every-inactive': { ...INACTIVE_LIMITS, requestsPerSecond: INACTIVE_REQUESTS_PER_SECOND },
  restrictive: RESTRICTIVE_LIMITS,
} as const;

/** Returns the names of the limits in `spec.limits`. */
export function limitNamesOf(profile: LimitProfile): string[] {
  return profile === 'none' ? [] : Object.keys(LIMITS_BY_PROFILE[profile]);
}

/**
 * Returns manifests with one Service and one EndpointSlice for each backend. The Service `echo` belongs to a separate tenant without
 * limits: `fairness` measures its latency while the other tenant, `bench`, is flooded.
 */
export function benchmarkManifests(ports: BackendPorts, backends: BackendPorts, limits: LimitProfile = 'none'): string {
  const services = BACKEND_NAMES.map((name) => backendServiceManifest(name, ports[name], backends[name]));
  return [...services, ...(limits === 'none' ? [] : [tenantPolicyManifest(limits)])].join('---\n');
}

export function namespaceOf(name: BackendName): string {
  return name === 'echo' ? 'calm' : 'bench';
}

/** Returns the TenantPolicy of the tenant `bench`. `allowedHosts` are the hosts that it may use on shared ports. */
export function tenantPolicyManifest(
  limits: Exclude<LimitProfile, 'none'>,
  allowedHosts: readonly string[] = [],
): string {
  return `apiVersion: v1
kind: Namespace
metadata: {name: bench, labels: {kubernetes.io/metadata.name: bench}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: bench}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: bench}}
  allowedHosts: ${JSON.stringify(allowedHosts)}
  limits: {${Object.entries(LIMITS_BY_PROFILE[limits])
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')}}
`;
}

function backendServiceManifest(name: BackendName, port: number, target: number): string {
  const protocol = name === 'datagrams' ? 'UDP' : 'TCP';
  return serviceManifest({ name, namespace: namespaceOf(name), protocol, port }, { target, addresses: ['127.0.0.1'] });
}

export type ServiceManifestOptions = {
  readonly name: string;
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  /** The protocol of the endpoints, for example `http`; absent if Weir relays bytes. */
  readonly appProtocol?: string;
  /** Annotation names without the prefix `weir.dev/`. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Returns the manifest of a Service without a selector, and of its EndpointSlice. */
export function serviceManifest(
  { name, namespace, protocol, port, appProtocol, annotations = {} }: ServiceManifestOptions,
  { target, addresses }: { readonly target: number; readonly addresses: readonly string[] },
): string {
  const prefixed = Object.entries(annotations).map(([key, value]) => `weir.dev/${key}: ${JSON.stringify(value)}`);
  const application = appProtocol === undefined ? '' : `, appProtocol: ${appProtocol}`;
  const endpoints = addresses.map((address) => `{addresses: [${address}], conditions: {ready: true}}`);
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, annotations: {${prefixed.join(', ')}}}
spec:
  type: LoadBalancer
  loadBalancerClass: weir.dev/weir
  ports: [{name: it, port: ${port}, targetPort: ${target}, protocol: ${protocol}${application}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: ${namespace}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: it, port: ${target}, protocol: ${protocol}}]
endpoints: [${endpoints.join(', ')}]
`;
}

/** Returns the manifest of a Secret with a certificate. */
export function tlsSecretManifest(
  { name, namespace }: { readonly name: string; readonly namespace: string },
  { chain, key }: Pick<Certificate, 'chain' | 'key'>,
): string {
  return `apiVersion: v1
kind: Secret
metadata: {name: ${name}, namespace: ${namespace}}
type: kubernetes.io/tls
stringData: {tls.crt: ${JSON.stringify(chain)}, tls.key: ${JSON.stringify(key)}}
`;
}
