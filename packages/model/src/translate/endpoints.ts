import type { ListDiff } from '../list-diff.ts';
import { canonicalAddress } from '../match/cidr.ts';
import { type ZonePreference, zonePreferenceOf, zonesFor } from '../settings/zone-preference.ts';
import type { ServiceObject, SliceEndpoint, SliceObject } from '../snapshot.ts';
import {
  type Endpoint,
  type EndpointsEntry,
  endpointKey,
  endpointsId,
  MAX_ENDPOINTS_PER_ENTRY,
  type Protocol,
} from '../table/entry.ts';
import type { EndpointAddressCheck } from './endpoint-trust.ts';

export interface ServiceEndpoints {
  readonly entries: readonly EndpointsEntry[];
  /** `10.0.0.1 is not of a pod of this namespace`, each address once. */
  readonly forbidden: readonly string[];
}

interface CandidateEndpoint {
  readonly slice: string;
  readonly endpoint: Endpoint;
  readonly state: SliceEndpoint;
}

/**
 * The endpoint entries of a Service's TCP and UDP ports, one group per slice, so that a change of one endpoint changes
 * one entry. In use are those that are ready; when none is, those that still serve while they terminate.
 */
export function endpointsFor(
  service: ServiceObject,
  slices: readonly SliceObject[],
  mayUse: EndpointAddressCheck,
): ServiceEndpoints {
  const forbidden = new Set<string>();
  const preference = zonePreferenceOf(service);
  // Once for all ports: a Service may have thousands, in as many slices.
  const named = slices.map((slice) => ({ slice, ports: Map.groupBy(slice.ports, portNameKey) }));
  const entries = service.ports.flatMap((port) => {
    const protocol = port.protocol as Protocol;
    const found = named.flatMap(({ slice, ports }) =>
      endpointsInSlice(slice, ports.get(portNameKey(port)) ?? [], preference),
    );
    const trusted = found.filter(({ endpoint }) => {
      const objection = mayUse(service.namespace, endpoint.address);
      if (objection !== undefined) forbidden.add(`${endpoint.address} ${objection}`);
      return objection === undefined;
    });
    return endpointEntriesFor(
      { service: service.uid, port: port.port, protocol },
      trusted,
      endpointUseFor(service, trusted),
    );
  });
  return { entries, forbidden: [...forbidden].sort() };
}

/** A port of a slice belongs to the Service port of the same name; its number may differ from pod to pod. */
export function portNameKey({ name, protocol }: { readonly name: string | null; readonly protocol: string }): string {
  return `${protocol}/${name ?? ''}`;
}

function endpointsInSlice(
  slice: SliceObject,
  numbers: SliceObject['ports'],
  preference: ZonePreference,
): CandidateEndpoint[] {
  return numbers.flatMap(({ port: number }) =>
    number === null
      ? []
      : slice.endpoints.flatMap((state) =>
          state.addresses.map((address) => {
            const [zone, ...otherZones] = zonesFor(preference, state);
            return {
              slice: slice.name,
              endpoint: {
                address: canonicalAddress(address) ?? address,
                port: number,
                ...(zone !== undefined && { zone }),
                ...(otherZones.length > 0 && { otherZones }),
              },
              state,
            };
          }),
        ),
  );
}

interface EndpointUse {
  readonly isUsed: (found: CandidateEndpoint) => boolean;
  readonly areLeaving: boolean;
}

function endpointUseFor(service: ServiceObject, found: readonly CandidateEndpoint[]): EndpointUse {
  if (service.publishNotReadyAddresses) return { isUsed: () => true, areLeaving: false };
  return found.some(({ state }) => state.ready)
    ? { isUsed: ({ state }) => state.ready, areLeaving: false }
    : { isUsed: ({ state }) => state.serving && state.terminating, areLeaving: true };
}

type ServicePortKey = Pick<EndpointsEntry, 'service' | 'port' | 'protocol'>;

function endpointEntriesFor(
  port: ServicePortKey,
  found: readonly CandidateEndpoint[],
  { isUsed, areLeaving }: EndpointUse,
): EndpointsEntry[] {
  const bySlice = Map.groupBy(found, ({ slice }) => slice);
  return [...bySlice].flatMap(([slice, all]) => {
    const endpoints = sortedUnique(all.filter(isUsed).map(({ endpoint }) => endpoint));
    const unready = sortedUnique(all.filter((one) => !isUsed(one)).map(({ endpoint }) => endpoint)).length;
    const chunks = Math.max(1, Math.ceil(endpoints.length / MAX_ENDPOINTS_PER_ENTRY));
    return Array.from(
      { length: chunks },
      (_, chunk): EndpointsEntry => ({
        kind: 'endpoints',
        id: endpointsId(port, slice, chunk),
        ...port,
        endpoints: endpoints.slice(chunk * MAX_ENDPOINTS_PER_ENTRY, (chunk + 1) * MAX_ENDPOINTS_PER_ENTRY),
        unready: chunk === 0 ? unready : 0,
        ...(areLeaving && endpoints.length > 0 && { leaving: true }),
      }),
    );
  });
}

function sortedUnique(endpoints: readonly Endpoint[]): Endpoint[] {
  const unique = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  return [...unique].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** The slices of each Service, by `namespace/name`. */
export class SliceIndex {
  readonly #byService = new Map<string, readonly SliceObject[]>();

  /** Sorted by name. */
  of(service: { readonly namespace: string; readonly name: string }): readonly SliceObject[] {
    return this.#byService.get(`${service.namespace}/${service.name}`) ?? [];
  }

  /** Returns whose slices are others now. */
  update({ removed, added }: ListDiff<SliceObject>): ReadonlySet<string> {
    const leaving = Map.groupBy(removed, keyOf);
    const coming = Map.groupBy(added, keyOf);
    const touched = new Set([...leaving.keys(), ...coming.keys()]);
    for (const key of touched) {
      const left = new Set(leaving.get(key));
      const stays = (this.#byService.get(key) ?? []).filter((slice) => !left.has(slice));
      const all = [...stays, ...(coming.get(key) ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
      if (all.length === 0) this.#byService.delete(key);
      else this.#byService.set(key, all);
    }
    return touched;
  }
}

function keyOf({ namespace, serviceName }: SliceObject): string {
  return `${namespace}/${serviceName}`;
}
