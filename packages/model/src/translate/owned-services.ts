import type { FleetSettings } from '../fleet-settings.ts';
import { ANNOTATION_PREFIX } from '../settings/service-settings.ts';
import type { ServiceObject } from '../snapshot.ts';

/**
 * Reports whether Weir serves this Service, judged by its type, its class and the annotation weir.dev/ignore. A Service that is being
 * deleted is not served.
 */
export function isOwned(service: ServiceObject, settings: FleetSettings): boolean {
  if (service.type !== 'LoadBalancer' || service.deleting) return false;
  if (isIgnored(service)) return false;
  if (service.loadBalancerClass === null) return settings.classless;
  return service.loadBalancerClass === settings.loadBalancerClass;
}

/** Reports whether the annotation weir.dev/ignore keeps Weir from serving the Service. */
export function isIgnored({ annotations }: ServiceObject): boolean {
  return annotations[`${ANNOTATION_PREFIX}ignore`] === 'true';
}
