// What the active checks of an endpoint have shown.
import type { HealthCheckTiming } from '../settings/service-settings.ts';

export interface CheckState {
  readonly passes: boolean;
  /** Answers in a row that speak against it. */
  readonly contraryResults: number;
  /** It passes, and its last answer was good: before the first one nobody knows. */
  readonly isConfirmed: boolean;
}

/** Kubernetes says that it is ready: it passes until it has failed often enough. */
export const INITIAL_CHECK_STATE: CheckState = { passes: true, contraryResults: 0, isConfirmed: false };

/** The state after one more answer; the same object when nothing has changed. */
export function recordCheckResult(
  state: CheckState,
  isGood: boolean,
  { healthyThreshold, unhealthyThreshold }: Pick<HealthCheckTiming, 'healthyThreshold' | 'unhealthyThreshold'>,
): CheckState {
  const { passes } = state;
  if (isGood === passes)
    return state.contraryResults === 0 && state.isConfirmed === isGood
      ? state
      : { passes, contraryResults: 0, isConfirmed: isGood };
  const contraryResults = state.contraryResults + 1;
  const needed = passes ? unhealthyThreshold : healthyThreshold;
  return contraryResults < needed
    ? { passes, contraryResults, isConfirmed: false }
    : { passes: isGood, contraryResults: 0, isConfirmed: isGood };
}
