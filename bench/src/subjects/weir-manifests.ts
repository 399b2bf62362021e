import type { Certificate } from '@weir/testkit';
import { BACKEND_NAMES, type BackendName, type BackendPorts } from './subject.ts';

/** Limits of the tenant `bench`. `inactive`: too high to have an effect. `restrictive`: at most a tenth of the load of a flood. */
export type LimitProfile = 'none' | 'inactive' | 'restrictive';

export const RESTRICTIVE_LIMITS = {
  connections: 8,
  newConnectionsPerSecond: 200,
  inBitsPerSecond: '100M',
  outBitsPerSecond: '100M',
} as const;

/** Values of `spec.limits` in the TenantPolicy, by profile. */
const LIMITS_BY_PROFILE = {
  inactive: {
    connections: '100000',
    newConnectionsPerSecond: '1000000',
    inBitsPerSecond: '400G',
    outBitsPerSecond: '400G',
  },
  restrictive: RESTRICTIVE_LIMITS,
} as const;

export const LIMIT_NAMES: readonly string[] = Object.keys(LIMITS_BY_PROFILE.inactive);

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
