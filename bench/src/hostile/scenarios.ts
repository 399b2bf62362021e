import { startDeadEndpoints } from './dead-endpoints.ts';
import { startFlowFlood } from './flow-flood.ts';
import { startHandshakeBurst } from './handshake-burst.ts';
import type { BoundedValue } from './hostile-result.ts';
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

export type HostileScenario = {
  /** The highest rise of the other tenant's 99th percentile during the attack, in ms. */
  readonly maxP99RiseMs: number;
  start(): Promise<Attacker>;
};

export const HOSTILE_SCENARIOS: Readonly<Record<HostileScenarioName, HostileScenario>> = {
  handshakes: {
    maxP99RiseMs: 25,
    start: () => startHandshakeBurst({ connections: 5_000, key: { keyType: 'ec' } }),
  },
  'handshakes-rsa': {
    maxP99RiseMs: 25,
    start: () => startHandshakeBurst({ connections: 2_500, key: { keyType: 'rsa', rsaBits: 4_096 } }),
  },
  'dead-endpoints': {
    maxP99RiseMs: 5,
    start: () => startDeadEndpoints({ endpoints: 1_000, clientsPerSecond: 5 }),
  },
  'udp-flows': {
    maxP99RiseMs: 10,
    start: () => startFlowFlood({ flowsPerSecond: 10_000 }),
  },
  'slow-readers': { maxP99RiseMs: 25, start: startSlowReaders },
};
