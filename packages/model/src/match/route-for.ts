// One route, put together from the entries of its Service.
import type { CertificateEntry, Endpoint, EndpointsEntry, ListenerEntry, ServiceEntry } from '../table/entry.ts';
import { zonesOf } from '../table/entry.ts';
import type { SourceRangeCheck } from './admission.ts';
import { endpointKey } from './endpoint-key.ts';
import { type Route, routeKey, terminatingTlsPort } from './route.ts';

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
