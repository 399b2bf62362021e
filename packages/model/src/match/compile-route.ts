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

// Builds a route from the table entries of its Service.
export interface RouteInput {
  /** The zone of the node; null if the node has none. */
  readonly zone: string | null;
  /** The endpoints entries of the listener's port. */
  readonly chunks: readonly EndpointsEntry[];
  readonly sourceRangeCheck: SourceRangeCheck;
  readonly certificate: CertificateEntry | undefined;
}

/**
 * Compiles the route of a listener. Throws if the Service has no settings: translation gives listeners only to Services with
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
 * Returns the endpoints of all chunks, sorted and without duplicates: an address can be in two slices while it moves between them.
 * Of two duplicates, the first by the names of its zones is kept, so that the result does not depend on the order of changes.
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

/** Whether endpoints are sorted and unique, as in most entries, so that the list needs no copy. */
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
  /** From the newest entry of the Service. */
  ranges: readonly string[];
  readonly allowsSource: Route['allowsSource'];
}

/**
 * The check for `ranges` (CIDRs). Returns `former`, the Service's check so far, if the ranges are equal. Compiles the ranges when
 * the first client connects, because not every thread that compiles the table serves clients: the main thread of a proxy does not.
 */
export function sourceRangeCheckFor(ranges: readonly string[], former: SourceRangeCheck | undefined): SourceRangeCheck {
  if (ranges.length === 0) return ALLOW_ALL;
  if (former === undefined || !isJsonEqual(ranges, former.ranges)) return compileSourceRanges(ranges);
  // Lets the former entry's list be collected.
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
