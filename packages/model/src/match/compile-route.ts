import { isJsonEqual } from '../compare.ts';
import {
  type CertificateEntry,
  type Endpoint,
  type EndpointsEntry,
  endpointKey,
  type ListenerEntry,
  type ServiceEntry,
  zonesOf,
} from '../table/entry.ts';
import { compileNetworks, type NetworkSet } from './networks.ts';
import { type Route, routeKey, terminatingTlsPort } from './route.ts';

// What `compileRoute` needs besides the entries of the listener and the Service.
export interface RouteInput {
  /** The zone of the node; null if the node has none. */
  readonly zone: string | null;
  /** The endpoints entries of the listener's port. */
  readonly chunks: readonly EndpointsEntry[];
  readonly sourceRangeCheck: SourceRangeCheck;
  readonly certificate: CertificateEntry | undefined;
}

/**
 * Compiles the route of a listener. Throws if the Service has no settings, because translation gives listeners only to Services with
 * settings.
 */
export function compileRoute(listener: ListenerEntry, service: ServiceEntry, parts: RouteInput): Route {
  const { zone, chunks, sourceRangeCheck, certificate } = parts;
  const { settings } = service;
  if (settings === null) throw new Error(`invalid table: Service ${service.uid} has a listener but no settings`);
  const isTls = terminatingTlsPort({ settings, listener }) !== undefined;
  return {
    certificate: isTls ? certificate : undefined,
    key: routeKey(listener),
    listener,
    service,
    settings,
    endpoints: mergeEndpoints(chunks),
    zone,
    allowsSource: sourceRangeCheck.allowsSource,
  };
}

/**
 * Returns the endpoints of all chunks, sorted and without duplicates. An endpoint can be in two chunks while it moves from one
 * EndpointSlice to another. Keeps the duplicate whose zone names sort first, so that the result does not depend on the order of changes.
 */
function mergeEndpoints(chunks: readonly EndpointsEntry[]): readonly Endpoint[] {
  const [first, ...others] = chunks;
  if (first !== undefined && others.length === 0 && isSorted(first.endpoints)) return first.endpoints;
  const unique = new Map<string, Endpoint>();
  for (const chunk of chunks) {
    for (const endpoint of chunk.endpoints) {
      const key = endpointKey(endpoint);
      const known = unique.get(key);
      if (known === undefined || zonesOf(endpoint).join() < zonesOf(known).join()) unique.set(key, endpoint);
    }
  }
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** Whether endpoints are sorted and unique, as they are in most entries. A sorted list needs no copy. */
function isSorted(endpoints: readonly Endpoint[]): boolean {
  let before: string | undefined;
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    if (before !== undefined && before >= key) return false;
    before = key;
  }
  return true;
}

/** The check of a client's address against the source ranges of a Service, shared by all routes of the Service. */
export interface SourceRangeCheck {
  /** CIDRs, from the newest entry of the Service. */
  ranges: readonly string[];
  readonly allowsSource: Route['allowsSource'];
}

/**
 * Returns the check for `ranges` (CIDRs): `former`, the previous check of the Service, if its ranges are equal; otherwise a new check. A
 * check compiles its ranges only when the first client connects, because the main thread of a proxy has routes too, but serves no clients.
 */
export function sourceRangeCheckFor(ranges: readonly string[], former: SourceRangeCheck | undefined): SourceRangeCheck {
  if (ranges.length === 0) return ALLOW_ALL;
  if (former === undefined || !isJsonEqual(ranges, former.ranges)) return compileSourceRanges(ranges);
  // Drops the reference to the old list, so that the old list can be garbage-collected.
  former.ranges = ranges;
  return former;
}

const ALLOW_ALL: SourceRangeCheck = { ranges: Object.freeze([]), allowsSource: () => true };

function compileSourceRanges(ranges: readonly string[]): SourceRangeCheck {
  let networks: NetworkSet | undefined;
  const check: SourceRangeCheck = {
    ranges,
    allowsSource: ({ address }) => {
      networks ??= compileNetworks(check.ranges);
      return networks.contains(address);
    },
  };
  return check;
}
