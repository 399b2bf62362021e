import type { ServiceObject, SliceEndpoint } from '../snapshot.ts';

/** PreferClose is the name before Kubernetes 1.34. */
const SAME_ZONE_DISTRIBUTIONS: ReadonlySet<string> = new Set(['PreferSameZone', 'PreferClose']);
/** The names of the topology annotation; the second is from before Kubernetes 1.27. The first one that the Service has counts. */
const TOPOLOGY_ANNOTATIONS = [
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
] as const;
const AUTO_MODES: ReadonlySet<string> = new Set(['Auto', 'auto']);

/**
 * Selects the zones in which an endpoint is preferred. `hint` (topology-mode): only the hints of the EndpointSlice controller, so
 * that without hints no endpoint is preferred. `ownZone`: the hints, or without hints the zone that the endpoint is in.
 */
export type ZonePreference = 'none' | 'ownZone' | 'hint';

/** The zone preference of a Service. As in Kubernetes, the annotation overrides the field. */
export function zonePreferenceOf({
  annotations,
  trafficDistribution,
}: Pick<ServiceObject, 'annotations' | 'trafficDistribution'>): ZonePreference {
  const name = TOPOLOGY_ANNOTATIONS.find((each) => Object.hasOwn(annotations, each));
  if (name !== undefined && AUTO_MODES.has(annotations[name] ?? '')) return 'hint';
  return SAME_ZONE_DISTRIBUTIONS.has(trafficDistribution ?? '') ? 'ownZone' : 'none';
}

/** Returns the zones whose clients prefer an endpoint. */
export function zonesFor(preference: ZonePreference, { zone, hintedZones }: SliceEndpoint): readonly string[] {
  const ownZone = zone === null ? [] : [zone];
  switch (preference) {
    case 'none':
      return ownZone;
    case 'ownZone':
      return hintedZones ?? ownZone;
    case 'hint':
      return hintedZones ?? [];
  }
}
