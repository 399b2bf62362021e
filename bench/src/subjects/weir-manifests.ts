import { BACKEND_NAMES, type BackendName, type BackendPorts } from './subject.ts';

/**
 * Limits of the tenant that takes the load. `roomy`: set and counted, too high to act. `tight`: a tenth of what a flood asks for, or
 * less.
 */
export type LimitProfile = 'none' | 'roomy' | 'tight';

export const TIGHT_LIMITS = {
  connections: 8,
  newConnectionsPerSecond: 200,
  inBitsPerSecond: '100M',
  outBitsPerSecond: '100M',
} as const;

/** What a TenantPolicy says under `limits`. */
const LIMITS_BY_PROFILE = {
  roomy: {
    connections: '100000',
    newConnectionsPerSecond: '1000000',
    inBitsPerSecond: '400G',
    outBitsPerSecond: '400G',
  },
  tight: TIGHT_LIMITS,
} as const;

export const LIMIT_NAMES: readonly string[] = Object.keys(LIMITS_BY_PROFILE.roomy);

/**
 * Services without selector, and slices that point at the backends on loopback. `echo` belongs to a tenant of its own, which has no
 * limits: it is the one that must not feel what the other does.
 */
export function benchmarkManifests(ports: BackendPorts, backends: BackendPorts, limits: LimitProfile = 'none'): string {
  const services = BACKEND_NAMES.map((name) => backendServiceManifest(name, ports[name], backends[name]));
  return [...services, ...(limits === 'none' ? [] : [tenantPolicyManifest(limits)])].join('---\n');
}

export function namespaceOf(name: BackendName): string {
  return name === 'echo' ? 'calm' : 'bench';
}

function tenantPolicyManifest(limits: Exclude<LimitProfile, 'none'>): string {
  return `apiVersion: v1
kind: Namespace
metadata: {name: bench, labels: {kubernetes.io/metadata.name: bench}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: bench}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: bench}}
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
  /** Without `weir.dev/`. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** A Service without selector, and the one slice of its endpoints. */
export function serviceManifest(
  { name, namespace, protocol, port, annotations = {} }: ServiceManifestOptions,
  { target, addresses }: { readonly target: number; readonly addresses: readonly string[] },
): string {
  const noted = Object.entries(annotations).map(([key, value]) => `weir.dev/${key}: ${JSON.stringify(value)}`);
  const endpoints = addresses.map((address) => `{addresses: [${address}], conditions: {ready: true}}`);
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, annotations: {${noted.join(', ')}}}
spec:
  type: LoadBalancer
  loadBalancerClass: weir.dev/weir
  ports: [{name: it, port: ${port}, targetPort: ${target}, protocol: ${protocol}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: ${namespace}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: it, port: ${target}, protocol: ${protocol}}]
endpoints: [${endpoints.join(', ')}]
`;
}
