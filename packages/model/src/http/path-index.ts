// The routes of one host, compiled for look-up by path.
import { compileFilters, type RouteFilters } from './apply-filters.ts';
import { compareAge } from './host-owners.ts';
import type { FieldMatch, HttpMatch, HttpRoute } from './route.ts';

/** A route with the item of its `matches` that matches a request. */
export interface RouteMatch {
  readonly route: HttpRoute;
  readonly match: HttpMatch;
  readonly filters: RouteFilters;
}

/** What `findRoute` reads of a request. `host`, `path` and `query` are texts of a `RequestTarget`. */
export interface RoutedRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
  /**
   * Returns the value of the header field with this name in lower case; undefined if the request has no such field. Called only for routes
   * with header matches.
   */
  header(name: string): string | undefined;
}

export interface PathIndex {
  /** The first candidate for each exact path. Undefined if no route has an exact path. */
  readonly exact: ReadonlyMap<string, Candidate> | undefined;
  /** The tree of prefixes. The root is the prefix `/`. */
  readonly root: PrefixNode;
  readonly usesQuery: boolean;
  /** Whether the path of a request decides which route gets the request, or what a route makes of the request. */
  readonly usesPath: boolean;
}

/**
 * A match in the list of all matches of the same path, sorted by precedence: the first candidate whose conditions are true gets the request.
 * The list is linked, and each candidate says whether it has conditions, because cache misses dominate a look-up among thousands of hosts.
 */
interface Candidate extends RouteMatch {
  /** Whether there are conditions besides host and path. */
  readonly hasConditions: boolean;
  readonly next: Candidate | undefined;
}

interface PrefixNode {
  /** The last segment of the prefix; empty for the root. */
  readonly segment: string;
  /** The node of the next shorter prefix; undefined for the root. */
  readonly parent: PrefixNode | undefined;
  /** By the hash of their segment, so that a look-up makes no string for each segment. Undefined for a leaf. */
  children: Map<number, PrefixNode> | undefined;
  /** The next child of the same parent whose segment has the same hash. */
  readonly sameHash: PrefixNode | undefined;
  /** Undefined if only longer prefixes have routes. */
  first: Candidate | undefined;
}

/** What a route without `matches` matches. */
const EVERY_REQUEST: HttpMatch = { path: { kind: 'prefix', value: '/' }, method: null, headers: [], query: [] };

/**
 * Compiles the routes of one host. If routes of several tenants name the host, only the routes of the host's owner count (see `hostOwners`),
 * so that one tenant never gets requests for the host of another tenant, even if the table says so.
 */
export function compilePaths(routes: readonly HttpRoute[]): PathIndex {
  const sorted = [...routes].sort(compareAge);
  const matches = sorted
    .filter(({ tenant }) => tenant === sorted[0]?.tenant)
    .flatMap((route) => {
      const filters = compileFilters(route.filters);
      const conditions = route.matches.length === 0 ? [EVERY_REQUEST] : route.matches;
      return conditions.map((match): RouteMatch => ({ route, match, filters }));
    })
    // The sort is stable, so matches with equally many conditions stay sorted by age, by id, and by their order within the route.
    .sort(compareConditions);
  const exact = new Map<string, Candidate>();
  const root = prefixNode('', undefined);
  // The last match becomes the end of its list.
  for (const match of matches.toReversed()) {
    const { path, method, headers, query } = match.match;
    const hasConditions = method !== null || headers.length > 0 || query.length > 0;
    if (path.kind === 'exact') {
      exact.set(path.value, { ...match, hasConditions, next: exact.get(path.value) });
    } else {
      const node = addPrefix(root, path.value);
      node.first = { ...match, hasConditions, next: node.first };
    }
  }
  const usesQuery = matches.some(({ match }) => match.query.length > 0);
  return { exact: exact.size > 0 ? exact : undefined, root, usesQuery, usesPath: matches.some(usesPath) };
}

function usesPath({ match: { path }, filters: { redirect, rewrite } }: RouteMatch): boolean {
  const replacement = redirect?.path ?? rewrite?.path ?? null;
  return path.kind === 'exact' || path.value !== '/' || replacement !== null;
}

/**
 * Returns the match that gets a request for this host; undefined if no match fits. The precedence is that of the Gateway API: an exact path,
 * then the longest prefix, a method, more header matches, more query matches, the oldest route, and the first id. Costs O(length of the
 * path), plus the matches of the same path that do not fit, and O(length of the query) if a route of the host has query matches.
 */
export function findByPath(index: PathIndex, request: RoutedRequest): RouteMatch | undefined {
  const parameters = index.usesQuery ? parseParameters(request.query) : NO_PARAMETERS;
  const { path } = request;
  const exact = firstFit(index.exact?.get(path), request, parameters);
  if (exact !== undefined) return exact;
  for (let node: PrefixNode | undefined = longestPrefix(index.root, path); node !== undefined; node = node.parent) {
    const found = firstFit(node.first, request, parameters);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Orders matches of the same path: with a method first, then by falling numbers of header matches and query matches. */
function compareConditions({ match: a }: RouteMatch, { match: b }: RouteMatch): number {
  return (
    Number(b.method !== null) - Number(a.method !== null) ||
    b.headers.length - a.headers.length ||
    b.query.length - a.query.length
  );
}

function prefixNode(segment: string, parent: PrefixNode | undefined, sameHash?: PrefixNode): PrefixNode {
  return { segment, parent, children: undefined, sameHash, first: undefined };
}

function addPrefix(root: PrefixNode, prefix: string): PrefixNode {
  let node = root;
  for (const segment of prefix.split('/')) {
    // The text before the first slash and after a trailing slash is no segment. Valid prefixes have no other empty segments.
    if (segment === '') continue;
    let child = childFor(node, segment, 0, segment.length);
    if (child === undefined) {
      node.children ??= new Map();
      const hash = segmentHash(segment, 0, segment.length);
      child = prefixNode(segment, node, node.children.get(hash));
      node.children.set(hash, child);
    }
    node = child;
  }
  return node;
}

/** Returns the node of the longest prefix of the path. For the path `*`, this is the root, because `OPTIONS *` concerns the whole host. */
function longestPrefix(root: PrefixNode, path: string): PrefixNode {
  let node = root;
  for (let start = 1; node.children !== undefined && start < path.length; ) {
    const slash = path.indexOf('/', start);
    const end = slash < 0 ? path.length : slash;
    const child = childFor(node, path, start, end);
    if (child === undefined) break;
    node = child;
    start = end + 1;
  }
  return node;
}

/** Returns the child for the segment of the path between two indexes. */
function childFor(node: PrefixNode, path: string, start: number, end: number): PrefixNode | undefined {
  let child = node.children?.get(segmentHash(path, start, end));
  while (child !== undefined && (child.segment.length !== end - start || !path.startsWith(child.segment, start))) {
    child = child.sameHash;
  }
  return child;
}

/** Returns a hash of part of a text. The hash fits into 30 bits, so that V8 stores it without an allocation. */
function segmentHash(text: string, start: number, end: number): number {
  let hash = 0;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) & 0x3fff_ffff;
  return hash;
}

function firstFit(
  first: Candidate | undefined,
  request: RoutedRequest,
  parameters: ReadonlyMap<string, string>,
): RouteMatch | undefined {
  for (let candidate = first; candidate !== undefined; candidate = candidate.next) {
    if (!candidate.hasConditions) return candidate;
    const { method, headers, query } = candidate.match;
    if (method !== null && method !== request.method) continue;
    if (!headers.every((header) => fits(header, request.header(header.name)))) continue;
    if (query.every((parameter) => fits(parameter, parameters.get(parameter.name)))) return candidate;
  }
  return undefined;
}

function fits(condition: FieldMatch, value: string | undefined): boolean {
  return condition.kind === 'present' ? value !== undefined : value === condition.value;
}

const NO_PARAMETERS: ReadonlyMap<string, string> = new Map();

/**
 * Returns the decoded parameters of a query, such as `?a=b&c`, by name. Of several parameters with one name the first counts, as the Gateway
 * API recommends. A parameter without `=` has an empty value.
 */
function parseParameters(query: string): ReadonlyMap<string, string> {
  if (query.length < 2) return NO_PARAMETERS;
  const parameters = new Map<string, string>();
  for (const parameter of query.slice(1).split('&')) {
    const equals = parameter.indexOf('=');
    const name = decodeParameter(equals < 0 ? parameter : parameter.slice(0, equals));
    if (!parameters.has(name)) parameters.set(name, equals < 0 ? '' : decodeParameter(parameter.slice(equals + 1)));
  }
  return parameters;
}

/** Decodes a name or value as forms encode them. A text that is not valid UTF-8 stays encoded. */
function decodeParameter(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
