// The Services of a soak: whose they are, what is asked of them, and what stands behind and in front of them.
import type { EndpointBehaviour } from './endpoint-behaviour.ts';
import type { Character } from './script.ts';

export const serviceNames = [
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

export type ServiceName = (typeof serviceNames)[number];

export type ServicePlan = {
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly annotations: Readonly<Record<string, string>>;
  /** At addresses of their own and one port; `refuse` has no listener, `deaf` one that takes nothing. */
  readonly endpoints: readonly (EndpointBehaviour | 'refuse' | 'deaf')[];
  readonly character: Character;
  /** How often a new client comes here, beside the others. */
  readonly weight: number;
  /**
   * What comes to the endpoint is sent back, so that a client which has seen FIN both ways knows to the byte what was relayed.
   * Otherwise the ledger has to be between what the two ends know.
   */
  readonly isEcho: boolean;
};

export const sealedHost = 'sealed.example.com';

const echoes = ['echo', 'echo'] as const;

export const services: Readonly<Record<ServiceName, ServicePlan>> = {
  calm: plan('shop', { weight: 6 }),
  rough: plan('shop', { character: 'rough', weight: 6 }),
  told: plan('shop', {
    annotations: { 'proxy-protocol': 'v2' },
    endpoints: ['told-echo', 'told-echo'],
    character: 'rough',
    weight: 3,
  }),
  sealed: plan('shop', {
    annotations: { 'tls-passthrough': 'true', hosts: `${sealedHost},*.many.example.com` },
    character: 'sealed',
    weight: 4,
  }),
  datagrams: plan('shop', {
    protocol: 'UDP',
    annotations: { 'idle-timeout': '3s', 'max-connections': '100', 'in-bits-per-second': '2M' },
    endpoints: ['datagrams', 'datagrams'],
    weight: 0,
  }),
  limited: plan('game', {
    annotations: {
      algorithm: 'round-robin',
      'max-connections': '40',
      'max-connections-per-client': '10',
      'in-bits-per-second': '40M',
      'out-bits-per-second': '40M',
    },
    weight: 4,
  }),
  coming: plan('game', {
    annotations: { 'drain-timeout': '2s', 'connect-timeout': '1s' },
    endpoints: ['echo', 'echo', 'echo', 'echo'],
    weight: 4,
  }),
  paused: plan('play', { character: 'rough', weight: 3 }),
  faults: plan('play', {
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
    character: 'hopeful',
    weight: 6,
    isEcho: false,
  }),
  refused: plan('play', { endpoints: ['refuse', 'refuse'], character: 'hopeful', weight: 1, isEcho: false }),
  deaf: plan('play', {
    annotations: { 'connect-timeout': '1s' },
    endpoints: ['deaf'],
    character: 'hopeful',
    weight: 1,
    isEcho: false,
  }),
};

/** Of the namespace `game`; roomy enough for the usual load, and not for a flood. */
export const gameLimits = 'connections: 80, newConnectionsPerSecond: 30, inBitsPerSecond: 100M, outBitsPerSecond: 100M';

/** Outcomes of connections and datagrams that were refused before they were given to the Service: it has no connection more. */
export const refusals: readonly string[] = [
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

function plan(namespace: string, own: Partial<ServicePlan>): ServicePlan {
  return {
    namespace,
    protocol: 'TCP',
    annotations: {},
    endpoints: echoes,
    character: 'calm',
    weight: 1,
    isEcho: true,
    ...own,
  };
}

/** Each behaviour has an address of its own. */
export function endpointAddress(index: number): string {
  return `127.0.20.${index + 1}`;
}
