import type { ServiceObject, SliceEndpoint } from '../snapshot.ts';

/** PreferClose is what Kubernetes called it before 1.34. */
const SAME_ZONE_DISTRIBUTIONS: ReadonlySet<string> = new Set(['PreferSameZone', 'PreferClose']);
/** The second is what Kubernetes called it before 1.27. The first that is there counts. */
const TOPOLOGY_ANNOTATIONS = [
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
] as const;
const AUTO_MODES: ReadonlySet<string> = new Set(['Auto', 'auto']);

/**
 * By which zone endpoints are preferred: `hint` (topology-mode) is only what the EndpointSlice controller spread over the zones, and
 * where it gave no hints nobody is preferred; `place` is where they are, unless a hint says otherwise.
 */
export type ZonePreference = 'none' | 'place' | 'hint';

/** What a Service wishes. As in Kubernetes the annotation goes before the field. */
export function zonePreferenceOf({
  annotations,
  trafficDistribution,
}: Pick<ServiceObject, 'annotations' | 'trafficDistribution'>): ZonePreference {
  const name = TOPOLOGY_ANNOTATIONS.find((each) => Object.hasOwn(annotations, each));
  if (name !== undefined && AUTO_MODES.has(annotations[name] ?? '')) return 'hint';
  return SAME_ZONE_DISTRIBUTIONS.has(trafficDistribution ?? '') ? 'place' : 'none';
}

/** The zones from which an endpoint is preferred. */
export function zonesFor(preference: ZonePreference, { zone, hintedZones }: SliceEndpoint): readonly string[] {
  const place = zone === null ? [] : [zone];
  switch (preference) {
    case 'none':
      return place;
    case 'place':
      return hintedZones ?? place;
    case 'hint':
      return hintedZones ?? [];
  }
}
