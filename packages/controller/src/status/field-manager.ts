import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { FIELD_MANAGER } from '../kubernetes/kube-api.ts';

/** What the API server takes. */
const MAX_FIELD_MANAGER_CHARACTERS = 128;

/** Apply takes away what the same name said before and does not say again, so each says one thing. */
const FIELD_MANAGERS: { readonly status: string; readonly finalizer: string } = {
  status: FIELD_MANAGER,
  finalizer: 'weir-finalizer',
};

/**
 * In whose name a fleet writes the status of Services, and their finalizer. Fleets in one cluster differ by their class, and each may
 * take back only what it said itself: of a Service without class it cannot tell otherwise whether another fleet takes those.
 */
export function fieldManagerFor(
  loadBalancerClass: string = DEFAULT_FLEET_SETTINGS.loadBalancerClass,
  of: keyof typeof FIELD_MANAGERS = 'status',
): string {
  if (loadBalancerClass === DEFAULT_FLEET_SETTINGS.loadBalancerClass) return FIELD_MANAGERS[of];
  const prefix = `${FIELD_MANAGERS[of]}:`;
  return `${prefix}${loadBalancerClass.slice(-(MAX_FIELD_MANAGER_CHARACTERS - prefix.length))}`;
}
