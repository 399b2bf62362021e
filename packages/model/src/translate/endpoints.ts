import type { ListDiff } from '../compare.ts';
import { canonicalAddress } from '../match/address.ts';
import { type ZonePreference, zonePreferenceOf, zonesFor } from '../settings/zone-preference.ts';
import type { ServiceObject, ServicePort, SliceEndpoint, SliceObject } from '../snapshot.ts';
import {
  type Endpoint,
  type EndpointsEntry,
  endpointKey,
  endpointsId,
  MAX_ENDPOINTS_PER_ENTRY,
  type Protocol,
} from '../table/entry.ts';
import { EXCESSIVE_BYTES } from './endpoint-budgets.ts';
import { endpointsBytes } from './table-bytes.ts';

export interface ServiceEndpoints {
  readonly entries: readonly EndpointsEntry[];
  /** The estimated bytes of the entries; `EXCESSIVE_BYTES` if the entries exceed the maximum and are not complete. */
  readonly bytes: number;
  /** The refused endpoints with the reasons, sorted by text. No text occurs twice. */
  readonly forbidden: readonly ForbiddenEndpoint[];
}

/** Why an endpoint is refused. `address`: its address is refused with every port. `port`: the address is refused only with this port. */
export interface EndpointRefusal {
  readonly subject: 'address' | 'port';
  readonly reason: string;
}

export interface ForbiddenEndpoint extends EndpointRefusal {
  /** Such as `10.0.0.1 does not belong to a pod of this namespace`. */
  readonly text: string;
}

/** Returns why a Service may not have the endpoint; undefined if it may. */
export type EndpointCheck = (endpoint: Endpoint, protocol: Protocol) => EndpointRefusal | undefined;

interface CandidateEndpoint {
  readonly slice: string;
  readonly endpoint: Endpoint;
  readonly conditions: SliceEndpoint;
}

/**
 * Returns the endpoint entries of a Service's ports. Each slice has entries of its own, so that a change of a slice replaces few entries.
 * A port uses its ready endpoints. If no endpoint is ready, the port uses terminating endpoints that still serve (KEP-1669). Stops when the
 * entries exceed `maxBytes`, because a Service repeats the endpoints of its slices for each of its ports.
 */
export function endpointsFor(
  service: ServiceObject,
  slices: readonly SliceObject[],
  { checkEndpoint, maxBytes }: { readonly checkEndpoint: EndpointCheck; readonly maxBytes: number },
): ServiceEndpoints {
  const forbidden = new Map<string, ForbiddenEndpoint>();
  const preference = zonePreferenceOf(service);
  // Groups the ports of each slice once for all Service ports, because a Service may have many ports and many slices.
  const portsBySlice = slices.map((slice) => ({ slice, ports: Map.groupBy(slice.ports, portNameKey) }));
  const entriesOf = (port: ServicePort): EndpointsEntry[] => {
    const protocol = port.protocol as Protocol;
    const candidates = portsBySlice.flatMap(({ slice, ports }) =>
      endpointsInSlice(slice, ports.get(portNameKey(port)) ?? [], preference),
    );
    const trusted = candidates.filter(({ endpoint }) => {
      const refusal = checkEndpoint(endpoint, protocol);
      if (refusal === undefined) return true;
      const text = `${refusal.subject === 'port' ? hostPortText(endpoint) : endpoint.address} ${refusal.reason}`;
      forbidden.set(text, { ...refusal, text });
      return false;
    });
    return endpointEntriesFor(
      { service: service.uid, port: port.port, protocol },
      trusted,
      endpointUseFor(service, trusted),
    );
  };
  const sortedForbidden = (): ForbiddenEndpoint[] => [...forbidden.values()].sort((a, b) => (a.text < b.text ? -1 : 1));
  const entries: EndpointsEntry[] = [];
  let bytes = 0;
  for (const port of service.ports) {
    for (const entry of entriesOf(port)) {
      bytes += endpointsBytes(entry);
      if (bytes > maxBytes) return { entries, bytes: EXCESSIVE_BYTES, forbidden: sortedForbidden() };
      entries.push(entry);
    }
  }
  return { entries, bytes, forbidden: sortedForbidden() };
}

/** Returns the endpoints without the last entries, so that the other entries take at most `maxBytes`. */
export function endpointsWithin(endpoints: ServiceEndpoints, maxBytes: number): ServiceEndpoints {
  if (endpoints.bytes <= maxBytes) return endpoints;
  let bytes = 0;
  const end = endpoints.entries.findIndex((entry) => {
    bytes += endpointsBytes(entry);
    return bytes > maxBytes;
  });
  return { ...endpoints, entries: end < 0 ? endpoints.entries : endpoints.entries.slice(0, end) };
}

function hostPortText({ address, port }: Endpoint): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * Returns the key that matches a Service port with a port of a slice. The two ports have the same name and protocol, but may have
 * different numbers.
 */
export function portNameKey({ name, protocol }: { readonly name: string | null; readonly protocol: string }): string {
  return `${protocol}/${name ?? ''}`;
}

function endpointsInSlice(
  slice: SliceObject,
  ports: SliceObject['ports'],
  preference: ZonePreference,
): CandidateEndpoint[] {
  return ports.flatMap(({ port: number }) =>
    number === null
      ? []
      : slice.endpoints.flatMap((conditions) =>
          conditions.addresses.map((address) => {
            const [zone, ...otherZones] = zonesFor(preference, conditions);
            return {
              slice: slice.name,
              endpoint: {
                address: canonicalAddress(address) ?? address,
                port: number,
                ...(zone !== undefined && { zone }),
                ...(otherZones.length > 0 && { otherZones }),
              },
              conditions,
            };
          }),
        ),
  );
}

interface EndpointUse {
  readonly isUsed: (candidate: CandidateEndpoint) => boolean;
  readonly areTerminating: boolean;
}

function endpointUseFor(service: ServiceObject, candidates: readonly CandidateEndpoint[]): EndpointUse {
  if (service.publishNotReadyAddresses) return { isUsed: () => true, areTerminating: false };
  return candidates.some(({ conditions }) => conditions.ready)
    ? { isUsed: ({ conditions }) => conditions.ready, areTerminating: false }
    : { isUsed: ({ conditions }) => conditions.serving && conditions.terminating, areTerminating: true };
}

type ServicePortKey = Pick<EndpointsEntry, 'service' | 'port' | 'protocol'>;

function endpointEntriesFor(
  port: ServicePortKey,
  candidates: readonly CandidateEndpoint[],
  { isUsed, areTerminating }: EndpointUse,
): EndpointsEntry[] {
  const bySlice = Map.groupBy(candidates, ({ slice }) => slice);
  return [...bySlice].flatMap(([slice, all]) => {
    const endpoints = sortedUnique(all.filter(isUsed).map(({ endpoint }) => endpoint));
    const unready = sortedUnique(all.filter((candidate) => !isUsed(candidate)).map(({ endpoint }) => endpoint)).length;
    const chunks = Math.max(1, Math.ceil(endpoints.length / MAX_ENDPOINTS_PER_ENTRY));
    return Array.from(
      { length: chunks },
      (_, chunk): EndpointsEntry => ({
        kind: 'endpoints',
        id: endpointsId(port, slice, chunk),
        ...port,
        endpoints: endpoints.slice(chunk * MAX_ENDPOINTS_PER_ENTRY, (chunk + 1) * MAX_ENDPOINTS_PER_ENTRY),
        unready: chunk === 0 ? unready : 0,
        ...(areTerminating && endpoints.length > 0 && { leaving: true }),
      }),
    );
  });
}

function sortedUnique(endpoints: readonly Endpoint[]): Endpoint[] {
  const unique = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  return [...unique].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** Holds the EndpointSlices of each Service, by `namespace/name` of the Service. */
export class SliceIndex {
  readonly #byService = new Map<string, readonly SliceObject[]>();

  /** Returns the slices of a Service, sorted by name. */
  of(service: { readonly namespace: string; readonly name: string }): readonly SliceObject[] {
    return this.#byService.get(`${service.namespace}/${service.name}`) ?? [];
  }

  /** Applies changes of slices. Returns `namespace/name` of each Service whose slices changed. */
  update({ removed, added }: ListDiff<SliceObject>): ReadonlySet<string> {
    const removedByService = Map.groupBy(removed, servicePathOf);
    const addedByService = Map.groupBy(added, servicePathOf);
    const changed = new Set([...removedByService.keys(), ...addedByService.keys()]);
    for (const path of changed) {
      const gone = new Set(removedByService.get(path));
      const kept = (this.#byService.get(path) ?? []).filter((slice) => !gone.has(slice));
      const all = [...kept, ...(addedByService.get(path) ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
      if (all.length === 0) this.#byService.delete(path);
      else this.#byService.set(path, all);
    }
    return changed;
  }
}

function servicePathOf({ namespace, serviceName }: SliceObject): string {
  return `${namespace}/${serviceName}`;
}
