import { DEFAULT_SETTINGS } from '@weir/model';
import { FIELD_MANAGER } from '../kubernetes/kube-api.ts';

/** What the API server takes. */
const MOST_CHARACTERS = 128;

/**
 * In whose name a fleet writes the status of Services. Fleets in one cluster differ by their class, and each may take back only what it
 * said itself: of a Service without class it cannot tell otherwise whether another fleet takes those.
 */
export function fieldManagerFor(loadBalancerClass: string = DEFAULT_SETTINGS.loadBalancerClass): string {
  if (loadBalancerClass === DEFAULT_SETTINGS.loadBalancerClass) return FIELD_MANAGER;
  const prefix = `${FIELD_MANAGER}:`;
  return `${prefix}${loadBalancerClass.slice(-(MOST_CHARACTERS - prefix.length))}`;
}
