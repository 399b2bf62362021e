import { serviceText } from '../service-text.ts';
import { type BackendName, backendNames, type Ports } from './subject.ts';

/**
 * Limits of the tenant that takes the load. `roomy`: set and counted, too high to act. `tight`: a tenth of what a flood asks for, or
 * less.
 */
export type Limits = 'none' | 'roomy' | 'tight';

export const tightLimits = {
  connections: 8,
  newConnectionsPerSecond: 200,
  inBitsPerSecond: '100M',
  outBitsPerSecond: '100M',
} as const;

/** What a TenantPolicy says under `limits`. */
const limitsOf = {
  roomy: {
    connections: '100000',
    newConnectionsPerSecond: '1000000',
    inBitsPerSecond: '400G',
    outBitsPerSecond: '400G',
  },
  tight: tightLimits,
} as const;

export const limitNames: readonly string[] = Object.keys(limitsOf.roomy);

/**
 * Services without selector, and slices that point at the backends on loopback. `echo` belongs to a tenant of its own, which has no
 * limits: it is the one that must not feel what the other does.
 */
export function manifestsFor(ports: Ports, backends: Ports, limits: Limits = 'none'): string {
  const services = backendNames.map((name) => serviceFor(name, ports[name], backends[name]));
  return [...services, ...(limits === 'none' ? [] : [policyFor(limits)])].join('---\n');
}

export function namespaceOf(name: BackendName): string {
  return name === 'echo' ? 'calm' : 'bench';
}

function policyFor(limits: Exclude<Limits, 'none'>): string {
  return `apiVersion: v1
kind: Namespace
metadata: {name: bench, labels: {kubernetes.io/metadata.name: bench}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: bench}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: bench}}
  limits: {${Object.entries(limitsOf[limits])
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')}}
`;
}

function serviceFor(name: BackendName, port: number, target: number): string {
  const protocol = name === 'datagrams' ? 'UDP' : 'TCP';
  return serviceText({ name, namespace: namespaceOf(name), protocol, port }, { target, addresses: ['127.0.0.1'] });
}
