// The load of the benchmark `limits`: what clients offer at each of three proxies, phase by phase.
export const PROXIES = 3;
/** New connections per second of the tenant. */
export const LIMIT = 300;
/** Each subject starts with this load before the first phase, so that code is compiled and shares are found. */
export const WARM_UP_SECONDS = 4;

export type PhaseName = 'even' | 'skewed' | 'one proxy' | 'moved' | 'killed' | 'killed, no failover';

export type Phase = {
  readonly name: PhaseName;
  readonly seconds: number;
  /** Offered connections per second at each proxy. */
  readonly offered: readonly [number, number, number];
  /** When the last proxy is killed and when its successor starts, in seconds after the start of the phase. */
  readonly killAt?: number;
  readonly restartAt?: number;
  /** Whether a client that cannot connect to its proxy connects to another proxy. */
  readonly hasFailover?: boolean;
};

const KILL = {
  seconds: 22,
  offered: [LIMIT / 2, LIMIT / 2, LIMIT / 2],
  killAt: 2,
  restartAt: 12,
} as const;

export const PHASES: readonly Phase[] = [
  { name: 'even', seconds: 13, offered: [LIMIT / 2, LIMIT / 2, LIMIT / 2] },
  { name: 'skewed', seconds: 13, offered: [1.2 * LIMIT, 0.15 * LIMIT, 0.15 * LIMIT] },
  { name: 'one proxy', seconds: 13, offered: [2 * LIMIT, 0, 0] },
  { name: 'moved', seconds: 13, offered: [0, 2 * LIMIT, 0] },
  { name: 'killed', ...KILL, hasFailover: true },
  // The two live proxies are offered exactly the limit.
  { name: 'killed, no failover', ...KILL },
];

/** Returns the second, counted from the start of the first phase, at which the phase starts. */
export function phaseStart(name: PhaseName): number {
  const index = PHASES.findIndex((phase) => phase.name === name);
  return PHASES.slice(0, index).reduce((sum, { seconds }) => sum + seconds, 0);
}

export const TOTAL_SECONDS: number = PHASES.reduce((sum, { seconds }) => sum + seconds, 0);

/** Returns what is offered at each proxy `second` seconds after the start of the first phase, which may be negative. */
export function offeredAt(second: number): readonly [number, number, number] {
  return phaseAt(second)?.offered ?? [0, 0, 0];
}

/** Reports whether a client that cannot connect to its proxy at `second` connects to another proxy. */
export function hasFailoverAt(second: number): boolean {
  return phaseAt(second)?.hasFailover ?? false;
}

function phaseAt(second: number): Phase | undefined {
  let end = 0;
  return PHASES.find(({ seconds }) => {
    end += seconds;
    return second < end;
  });
}
