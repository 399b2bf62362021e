import type { ChangeRow, ControllerStartRow } from './control-result.ts';

export const START_TARGET = { services: 10_000, ms: 5_000, peakMiB: 600 } as const;
/** The bars of a change are those of three proxies; more of them on one machine take the CPU time from each other. */
export const TARGET_FOLLOWERS = 3;

/** The most that the 99th percentile may be; undefined: nothing was promised. */
export function changeTargetMs({
  services,
  followers,
  scenario,
}: Pick<ChangeRow, 'services' | 'followers' | 'scenario'>): number | undefined {
  if (followers !== TARGET_FOLLOWERS || scenario === 'rollout' || scenario === 'tenants') return undefined;
  return services <= 10 ? 30 : 60;
}

export function hasControlStartTarget({ services }: Pick<ControllerStartRow, 'services'>): boolean {
  return services === START_TARGET.services;
}
