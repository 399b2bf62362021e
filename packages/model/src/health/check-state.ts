// What the active checks of an endpoint have shown.
import type { HealthCheckTiming } from '../settings/service-settings.ts';

export interface CheckState {
  readonly passes: boolean;
  /** Answers in a row that speak against it. */
  readonly against: number;
  /** It passes, and its last answer was good: before the first one nobody knows. */
  readonly isProven: boolean;
}

/** Kubernetes says that it is ready: it passes until it has failed often enough. */
export const UNCHECKED: CheckState = { passes: true, against: 0, isProven: false };

/** The state after one more answer; the same object when nothing has changed. */
export function answered(
  state: CheckState,
  isGood: boolean,
  { healthyThreshold, unhealthyThreshold }: Pick<HealthCheckTiming, 'healthyThreshold' | 'unhealthyThreshold'>,
): CheckState {
  const { passes } = state;
  if (isGood === passes)
    return state.against === 0 && state.isProven === isGood ? state : { passes, against: 0, isProven: isGood };
  const against = state.against + 1;
  const needed = passes ? unhealthyThreshold : healthyThreshold;
  return against < needed ? { passes, against, isProven: false } : { passes: isGood, against: 0, isProven: isGood };
}
