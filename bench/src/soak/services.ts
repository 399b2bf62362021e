import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { EndpointBehaviour } from './endpoint-behaviours.ts';
import type { ClientProfile } from './script.ts';

// The Services of a soak, with their namespaces, annotations, endpoints and clients.
export const SERVICE_NAMES = [
  'orderly',
  'aborting',
  'proxy-protocol',
  'tls-passthrough',
  'datagrams',
  'limited',
  'changing-endpoints',
  'suspended',
  'faults',
  'refused',
  'unresponsive',
] as const;

export type ServiceName = (typeof SERVICE_NAMES)[number];

export type ServicePlan = {
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly annotations: Readonly<Record<string, string>>;
  /** Endpoints on different addresses. An endpoint `refuse` has no listener, and an endpoint `unresponsive` never accepts a connection. */
  readonly endpoints: readonly (EndpointBehaviour | 'refuse' | 'unresponsive')[];
  readonly clientProfile: ClientProfile;
  /** Share of new clients that connect to this Service, relative to the weights of all Services. */
  readonly weight: number;
  /** True if the endpoints echo. In this case, a client with the outcome `clean` knows exactly how many bytes were relayed. */
  readonly isEcho: boolean;
};

export const PASSTHROUGH_HOST = 'sealed.example.com';
const TWO_ECHOES = ['echo', 'echo'] as const;

export const SERVICES: Readonly<Record<ServiceName, ServicePlan>> = {
  orderly: servicePlan('shop', { weight: 6 }),
  aborting: servicePlan('shop', { clientProfile: 'aborting', weight: 6 }),
  'proxy-protocol': servicePlan('shop', {
    annotations: { 'proxy-protocol': 'v2' },
    endpoints: ['proxy-v2-echo', 'proxy-v2-echo'],
    clientProfile: 'aborting',
    weight: 3,
  }),
  'tls-passthrough': servicePlan('shop', {
    annotations: { 'tls-passthrough': 'true', hosts: `${PASSTHROUGH_HOST},*.many.example.com` },
    clientProfile: 'tls',
    weight: 4,
  }),
  datagrams: servicePlan('shop', {
    protocol: 'UDP',
    annotations: { 'idle-timeout': '3s', 'max-connections': '100', 'in-bits-per-second': '2M' },
    endpoints: ['datagrams', 'datagrams'],
    weight: 0,
  }),
  limited: servicePlan('game', {
    annotations: {
      algorithm: 'round-robin',
      'max-connections': '40',
      'max-connections-per-client': '10',
      'in-bits-per-second': '40M',
      'out-bits-per-second': '40M',
    },
    weight: 4,
  }),
  'changing-endpoints': servicePlan('game', {
    annotations: { 'drain-timeout': '2s', 'connect-timeout': '1s' },
    endpoints: ['echo', 'echo', 'echo', 'echo'],
    weight: 4,
  }),
  suspended: servicePlan('play', { clientProfile: 'aborting', weight: 3 }),
  faults: servicePlan('play', {
    annotations: { algorithm: 'random', 'idle-timeout': '3s' },
    endpoints: [
      'hang',
      'reset-at-once',
      'reset-at-request',
      'reset-amid-answer',
      'answer-early',
      'flood',
      'half-close',
      'never-read',
      'refuse',
    ],
    clientProfile: 'impatient',
    weight: 6,
    isEcho: false,
  }),
  refused: servicePlan('play', {
    endpoints: ['refuse', 'refuse'],
    clientProfile: 'impatient',
    weight: 1,
    isEcho: false,
  }),
  unresponsive: servicePlan('play', {
    annotations: { 'connect-timeout': '1s' },
    endpoints: ['unresponsive'],
    clientProfile: 'impatient',
    weight: 1,
    isEcho: false,
  }),
};

/** Limits of the namespace `game`. The usual load stays below these limits, a flood exceeds them. */
export const TENANT_LIMITS =
  'connections: 80, newConnectionsPerSecond: 30, inBitsPerSecond: 100M, outBitsPerSecond: 100M';

/** Outcomes of connections that the proxy refused. They are not in the Service's counter `connections`. */
export const REFUSED_OUTCOMES: readonly string[] = [
  'no-listener',
  'source-range',
  'connection-limit',
  'client-limit',
  'rate-limit',
  'bad-proxy-header',
  'bad-client-hello',
  'unknown-host',
  'prelude-timeout',
  'prelude-incomplete',
  'client-gone',
];

function servicePlan(namespace: string, own: Partial<ServicePlan>): ServicePlan {
  return {
    namespace,
    protocol: 'TCP',
    annotations: {},
    endpoints: TWO_ECHOES,
    clientProfile: 'orderly',
    weight: 1,
    isEcho: true,
    ...own,
  };
}

export function endpointAddress(index: number): string {
  return `127.0.20.${index + 1}`;
}

/** Returns the manifest of a Service and its EndpointSlice. `ready` contains the indexes of the endpoints in the slice. */
export function soakServiceManifest(
  name: ServiceName,
  { port, target, ready }: { readonly port: number; readonly target: number; readonly ready: readonly number[] },
): string {
  const { namespace, protocol, annotations } = SERVICES[name];
  return serviceManifest(
    { name, namespace, protocol, port, annotations },
    { target, addresses: ready.map(endpointAddress) },
  );
}

/** Returns the manifest of a Service without clients. The fault injector creates and deletes such Services to change the table. */
export function transientServiceManifest(index: number, { port, target }: { port: number; target: number }): string {
  return serviceManifest(
    { name: `transient-${index}`, namespace: `transient-${index % 3}`, protocol: 'TCP', port },
    { target, addresses: [endpointAddress(index)] },
  );
}

export const POLICY_MANIFEST: string = `apiVersion: v1
kind: Namespace
metadata: {name: game, labels: {kubernetes.io/metadata.name: game}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: game}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: game}}
  limits: {${TENANT_LIMITS}}
`;
