import type { ChangeRow, StartRow } from './control-result.ts';

export const startBar = { services: 10_000, ms: 5_000, peakMiB: 600 } as const;
/** The bars of a change are those of three proxies; more of them on one machine take the CPU time from each other. */
export const judgedFollowers = 3;

/** The most that the 99th percentile may be; undefined: nothing was promised. */
export function changeBar({
  services,
  followers,
  scenario,
}: Pick<ChangeRow, 'services' | 'followers' | 'scenario'>): number | undefined {
  if (followers !== judgedFollowers || scenario === 'rollout' || scenario === 'tenants') return undefined;
  return services <= 10 ? 30 : 60;
}

export function hasStartBar({ services }: Pick<StartRow, 'services'>): boolean {
  return services === startBar.services;
}
