import type { FleetSettings } from '../fleet-settings.ts';
import { ANNOTATION_PREFIX } from '../settings/service-settings.ts';
import type { ServiceObject } from '../snapshot.ts';

/** Whether Weir takes this Service: its type, its class, and that it does not ask to be left alone. */
export function isOwned(service: ServiceObject, settings: FleetSettings): boolean {
  if (service.type !== 'LoadBalancer' || service.deleting) return false;
  if (service.annotations[`${ANNOTATION_PREFIX}ignore`] === 'true') return false;
  if (service.loadBalancerClass === null) return settings.classless;
  return service.loadBalancerClass === settings.loadBalancerClass;
}

/** Of two Services that want the same, the one with the lower rank has it: class, age, then names. */
export interface Priority {
  readonly class: number;
  readonly age: number;
  readonly path: string;
}

/**
 * The order in which Services are served: those that hold ports, those that were taken and wait for a node, those whose
 * address was published (all else may be lost), then the oldest. What one `kubectl apply` makes is all of one second, and a
 * directory knows no time: then by namespace and name, which people see, unlike UIDs.
 */
export function priorityOf(
  { namespace, name, publishedIPs, createdAt }: ServiceObject,
  { hasPorts, isHeld }: { readonly hasPorts: boolean; readonly isHeld: boolean },
): Priority {
  const rankClass = hasPorts ? 0 : isHeld ? 1 : publishedIPs.length > 0 ? 2 : 3;
  // No name holds a NUL, so it sorts as (namespace, name).
  return { class: rankClass, age: createdAt ?? Number.MAX_SAFE_INTEGER, path: `${namespace}\0${name}` };
}

export function comparePriorities(a: Priority, b: Priority): number {
  return a.class - b.class || a.age - b.age || (a.path < b.path ? -1 : 1);
}
