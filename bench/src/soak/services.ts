import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { EndpointBehaviour } from './endpoint-behaviours.ts';
import type { ClientProfile } from './script.ts';

// The Services of a soak: whose they are, what is asked of them, and what stands behind and in front of them.
export const SERVICE_NAMES = [
  'calm',
  'rough',
  'told',
  'sealed',
  'datagrams',
  'limited',
  'coming',
  'paused',
  'faults',
  'refused',
  'deaf',
] as const;

export type ServiceName = (typeof SERVICE_NAMES)[number];

export type ServicePlan = {
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly annotations: Readonly<Record<string, string>>;
  /** At addresses of their own and one port; `refuse` has no listener, `deaf` one that takes nothing. */
  readonly endpoints: readonly (EndpointBehaviour | 'refuse' | 'deaf')[];
  readonly clientProfile: ClientProfile;
  /** How often a new client comes here, beside the others. */
  readonly weight: number;
  /**
   * What comes to the endpoint is sent back, so that a client which has seen FIN both ways knows to the byte what was relayed.
   * Otherwise the ledger has to be between what the two ends know.
   */
  readonly isEcho: boolean;
};

export const PASSTHROUGH_HOST = 'sealed.example.com';
const TWO_ECHOES = ['echo', 'echo'] as const;

export const SERVICES: Readonly<Record<ServiceName, ServicePlan>> = {
  calm: servicePlan('shop', { weight: 6 }),
  rough: servicePlan('shop', { clientProfile: 'rough', weight: 6 }),
  told: servicePlan('shop', {
    annotations: { 'proxy-protocol': 'v2' },
    endpoints: ['told-echo', 'told-echo'],
    clientProfile: 'rough',
    weight: 3,
  }),
  sealed: servicePlan('shop', {
    annotations: { 'tls-passthrough': 'true', hosts: `${PASSTHROUGH_HOST},*.many.example.com` },
    clientProfile: 'sealed',
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
  coming: servicePlan('game', {
    annotations: { 'drain-timeout': '2s', 'connect-timeout': '1s' },
    endpoints: ['echo', 'echo', 'echo', 'echo'],
    weight: 4,
  }),
  paused: servicePlan('play', { clientProfile: 'rough', weight: 3 }),
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
    clientProfile: 'hopeful',
    weight: 6,
    isEcho: false,
  }),
  refused: servicePlan('play', { endpoints: ['refuse', 'refuse'], clientProfile: 'hopeful', weight: 1, isEcho: false }),
  deaf: servicePlan('play', {
    annotations: { 'connect-timeout': '1s' },
    endpoints: ['deaf'],
    clientProfile: 'hopeful',
    weight: 1,
    isEcho: false,
  }),
};

/** Of the namespace `game`; roomy enough for the usual load, and not for a flood. */
export const TENANT_LIMITS =
  'connections: 80, newConnectionsPerSecond: 30, inBitsPerSecond: 100M, outBitsPerSecond: 100M';

/** Outcomes of connections and datagrams that were refused before they were given to the Service: it has no connection more. */
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
    clientProfile: 'calm',
    weight: 1,
    isEcho: true,
    ...own,
  };
}

/** Each behaviour has an address of its own. */
export function endpointAddress(index: number): string {
  return `127.0.20.${index + 1}`;
}

/** One Service and its slice; `ready` are the indexes of the endpoints that it has now. */
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

/** A Service that nobody visits: it comes and goes so that the table changes. */
export function transientServiceManifest(index: number, { port, target }: { port: number; target: number }): string {
  return serviceManifest(
    { name: `passing-${index}`, namespace: `passing-${index % 3}`, protocol: 'TCP', port },
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
