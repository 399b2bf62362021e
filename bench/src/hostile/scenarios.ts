import { startDeadEndpoints } from './dead-endpoints.ts';
import { startFlowFlood } from './flow-flood.ts';
import { startHandshakeBurst } from './handshake-burst.ts';
import type { BoundedValue, P99Target } from './hostile-result.ts';
import {
  HPACK_BOMB,
  type HttpAttackOptions,
  IDLE_HTTP2,
  LARGE_HEAD,
  RESET_REQUESTS,
  SLOW_BODY,
  SLOW_HEAD,
  SLOW_READ,
  startHttpAttack,
} from './http-attacks.ts';
import type { HostileScenarioName } from './options.ts';
import { startSlowReaders } from './slow-readers.ts';

/** The hostile tenant of a scenario. Its Services are in the namespace `hostile`. */
export type Attacker = AsyncDisposable & {
  /** The manifests of the tenant's objects. */
  readonly manifests: string;
  /** Prepares one attack on the process `pid`, for example by opening connections. Called before the other tenant's latency is measured. */
  arm(pid: number): Promise<void>;
  /** Attacks for at most `seconds`. Resolves with a text that says how much of the attack the proxy has accepted. */
  attack(seconds: number): Promise<string>;
  /** Returns what else the last attack has measured. */
  bounded?(): readonly BoundedValue[];
  /** Ends the attack, for example by closing the connections. Called after the measurement. */
  disarm(): Promise<void>;
};

export type HostileScenario = P99Target & {
  /** What the other tenant's clients send: messages on TCP connections, or HTTP requests. */
  readonly traffic: CalmTraffic;
  start(): Promise<Attacker>;
};

export type CalmTraffic = 'messages' | 'requests';

export const HOSTILE_SCENARIOS: Readonly<Record<HostileScenarioName, HostileScenario>> = {
  handshakes: {
    traffic: 'messages',
    maxP99RiseMs: 25,
    start: () => startHandshakeBurst({ connections: 5_000, key: { keyType: 'ec' } }),
  },
  'handshakes-rsa': {
    traffic: 'messages',
    maxP99RiseMs: 25,
    start: () => startHandshakeBurst({ connections: 2_500, key: { keyType: 'rsa', rsaBits: 4_096 } }),
  },
  'dead-endpoints': {
    traffic: 'messages',
    maxP99RiseMs: 5,
    start: () => startDeadEndpoints({ endpoints: 1_000, clientsPerSecond: 5 }),
  },
  'udp-flows': {
    traffic: 'messages',
    maxP99RiseMs: 10,
    start: () => startFlowFlood({ flowsPerSecond: 10_000 }),
  },
  'slow-readers': { traffic: 'messages', maxP99RiseMs: 25, start: startSlowReaders },
  'http-slow-heads': httpAttack({ connections: 1_000, perSecond: 1_000, bytes: SLOW_HEAD, isRefused: false }),
  'http-slow-bodies': httpAttack({
    connections: 1_000,
    perSecond: 1_000,
    bytes: SLOW_BODY,
    hasOwnEndpoint: true,
    isRefused: false,
  }),
  'http-slow-reads': httpAttack({
    connections: 1_000,
    perSecond: 1_000,
    bytes: SLOW_READ,
    hasOwnEndpoint: true,
    isRefused: false,
  }),
  'http-large-heads': httpAttack({ connections: 32, perSecond: 500, bytes: LARGE_HEAD, isRefused: true }),
  'http2-idle': httpAttack({ connections: 10_000, perSecond: 0, bytes: IDLE_HTTP2, isRefused: false }),
  'http2-resets': httpAttack({ connections: 8, perSecond: 20, bytes: RESET_REQUESTS, isRefused: true }),
  'http2-bombs': httpAttack({ connections: 32, perSecond: 200, bytes: HPACK_BOMB, isRefused: true }),
};

function httpAttack(options: HttpAttackOptions): HostileScenario {
  return { traffic: 'requests', maxP99Ratio: 2, start: () => startHttpAttack(options) };
}
