import type { ServiceObject, SliceEndpoint } from '../snapshot.ts';

/** The values of trafficDistribution that prefer a zone. `PreferClose` is the name of `PreferSameZone` before Kubernetes 1.34. */
const SAME_ZONE_DISTRIBUTIONS: ReadonlySet<string> = new Set(['PreferSameZone', 'PreferClose']);
/**
 * The names of the topology annotation; the second name is from before Kubernetes 1.27. If a Service has both annotations, only the first
 * counts.
 */
const TOPOLOGY_ANNOTATIONS = [
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
] as const;
const AUTO_MODES: ReadonlySet<string> = new Set(['Auto', 'auto']);

/**
 * Which zones prefer an endpoint. `hint` (topology-mode): only the zones in the hints of the EndpointSlice, and no zone without hints.
 * `ownZone`: the zones in the hints, or the zone of the endpoint if the slice has no hints. `none`: proxies ignore zones.
 */
export type ZonePreference = 'none' | 'ownZone' | 'hint';

/** Returns the zone preference of a Service. As in Kubernetes, the topology annotation overrides `trafficDistribution`. */
export function zonePreferenceOf({
  annotations,
  trafficDistribution,
}: Pick<ServiceObject, 'annotations' | 'trafficDistribution'>): ZonePreference {
  const name = TOPOLOGY_ANNOTATIONS.find((each) => Object.hasOwn(annotations, each));
  if (name !== undefined && AUTO_MODES.has(annotations[name] ?? '')) return 'hint';
  return SAME_ZONE_DISTRIBUTIONS.has(trafficDistribution ?? '') ? 'ownZone' : 'none';
}

/** Returns the zones whose clients should prefer this endpoint. For `none`, returns the endpoint's own zone, although proxies ignore it. */
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
