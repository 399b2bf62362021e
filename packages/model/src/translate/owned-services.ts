import type { FleetSettings } from '../fleet-settings.ts';
import { ANNOTATION_PREFIX } from '../settings/service-settings.ts';
import type { ServiceObject } from '../snapshot.ts';

/** Whether Weir serves this Service: by its type, its class and the annotation weir.dev/ignore. */
export function isOwned(service: ServiceObject, settings: FleetSettings): boolean {
  if (service.type !== 'LoadBalancer' || service.deleting) return false;
  if (service.annotations[`${ANNOTATION_PREFIX}ignore`] === 'true') return false;
  if (service.loadBalancerClass === null) return settings.classless;
  return service.loadBalancerClass === settings.loadBalancerClass;
}
