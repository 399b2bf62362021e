import { isJsonEqual } from '../json-equal.ts';
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

// One route, put together from the entries of its Service.

/** What the routes of a Service have in common, and the endpoints of the port. */
export interface RouteInput {
  readonly zone: string | null;
  readonly chunks: readonly EndpointsEntry[];
  readonly sourceRangeCheck: SourceRangeCheck;
  readonly certificate: CertificateEntry | undefined;
}

export function compileRoute(listener: ListenerEntry, service: ServiceEntry, parts: RouteInput): Route {
  const { zone, chunks, sourceRangeCheck, certificate } = parts;
  const { settings } = service;
  if (settings === null) throw new Error(`Service ${service.uid} has a listener but no settings`);
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
 * Deduplicated, since an address stands in two slices while it moves; sorted, and of two places the first by the names of its zones, so that
 * nothing depends on history.
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

/** As most entries are written: nothing to copy then. */
function isSorted(endpoints: readonly Endpoint[]): boolean {
  let before: string | undefined;
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    if (before !== undefined && before >= key) return false;
    before = key;
  }
  return true;
}

/** Whom the source ranges of a Service let in: one for all its routes, which may be thousands. */
export interface SourceRangeCheck {
  /** As they came last. */
  ranges: readonly string[];
  readonly allowsSource: Route['allowsSource'];
}

/**
 * `former`: what the Service had before. It stays when the ranges are the same, since an entry comes whole whatever changes in
 * it. They are compiled when the first client comes: who compiles the table may have none, as the main thread of a proxy.
 */
export function sourceRangeCheckFor(ranges: readonly string[], former: SourceRangeCheck | undefined): SourceRangeCheck {
  if (ranges.length === 0) return ALLOW_ALL;
  if (former === undefined || !isJsonEqual(ranges, former.ranges)) return compileSourceRanges(ranges);
  // The list of before can go.
  former.ranges = ranges;
  return former;
}

/** Of all Services without ranges. */
const ALLOW_ALL: SourceRangeCheck = { ranges: Object.freeze([]), allowsSource: () => true };

function compileSourceRanges(ranges: readonly string[]): SourceRangeCheck {
  let networks: NetworkSet | undefined;
  const admission: SourceRangeCheck = {
    ranges,
    allowsSource: ({ address }) => {
      networks ??= compileNetworks(admission.ranges);
      return networks.contains(address);
    },
  };
  return admission;
}
