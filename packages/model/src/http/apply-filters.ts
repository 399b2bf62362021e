// Applies the filters of a route to the texts of a request. The proxy writes the resulting texts.
import { DEFAULT_HTTP_PORTS, type HttpScheme, type RequestTarget } from './request-target.ts';
import type { HeaderFilter, HttpFilter, HttpMatch, PathReplacement, RedirectFilter, RewriteFilter } from './route.ts';

/** One change of a head. `set` replaces all fields of the name, `add` appends a field, `remove` removes all fields of the name. */
export type HeaderEdit =
  | { readonly kind: 'set' | 'add'; readonly name: string; readonly value: string }
  | { readonly kind: 'remove'; readonly name: string };

/** The filters of a route, sorted by what they change. Compiled once, so the proxy may keep what it derives from the lists. */
export interface RouteFilters {
  readonly redirect: RedirectFilter | undefined;
  readonly rewrite: RewriteFilter | undefined;
  /** In the order in which they are applied to the request. */
  readonly requestHeaders: readonly HeaderEdit[];
  /** In the order in which they are applied to the answer of the endpoint. */
  readonly responseHeaders: readonly HeaderEdit[];
}

/** Sorts the filters of a valid route. */
export function compileFilters(filters: readonly HttpFilter[]): RouteFilters {
  const headerEdits = (kind: HeaderFilter['kind']): readonly HeaderEdit[] =>
    filters.flatMap((filter) => (filter.kind === kind ? editsOf(filter) : []));
  return {
    redirect: filters.find((filter) => filter.kind === 'redirect'),
    rewrite: filters.find((filter) => filter.kind === 'rewrite'),
    requestHeaders: headerEdits('request-headers'),
    responseHeaders: headerEdits('response-headers'),
  };
}

function editsOf({ set, add, remove }: HeaderFilter): readonly HeaderEdit[] {
  return [
    ...remove.map((name): HeaderEdit => ({ kind: 'remove', name })),
    ...set.map((field): HeaderEdit => ({ kind: 'set', ...field })),
    ...add.map((field): HeaderEdit => ({ kind: 'add', ...field })),
  ];
}

/** What the endpoint gets. */
export interface RewrittenRequest {
  /** The value of Host. */
  readonly authority: string;
  /** The request target. */
  readonly text: string;
}

/**
 * Applies a rewrite to a request that matched `match`. A rewritten host has no port. `OPTIONS *` has no path, so only its host changes.
 */
export function rewriteRequest(
  { host, path }: RewriteFilter,
  match: HttpMatch,
  target: RequestTarget,
): RewrittenRequest {
  const authority = host ?? target.authority;
  if (path === null || target.path === '*') return { authority, text: target.text };
  return { authority, text: replacePath(path, match, target.path) + target.query };
}

/** How the client reached Weir. */
export interface ClientSide {
  readonly scheme: HttpScheme;
  readonly listenerPort: number;
}

/**
 * Returns the Location of a redirect for a request that matched `match`: an absolute URI (RFC 9110 §10.2.2). Returns undefined if neither the
 * redirect nor the client names a host; then the proxy answers with 400. A relative reference would be ambiguous there, because a path such
 * as `//evil.example` names a host.
 */
export function locationFor(
  redirect: RedirectFilter,
  { match, target, client }: { readonly match: HttpMatch; readonly target: RequestTarget; readonly client: ClientSide },
): string | undefined {
  const host = redirect.host ?? target.host;
  if (host === '') return undefined;
  const scheme = redirect.scheme ?? client.scheme;
  const port = redirect.port ?? (redirect.scheme === null ? client.listenerPort : DEFAULT_HTTP_PORTS[scheme]);
  // RFC 9110 §4.2.3: the default port of the scheme equals no port, and the normal form has no port.
  const authority = port === DEFAULT_HTTP_PORTS[scheme] ? host : `${host}:${port}`;
  // `OPTIONS *` concerns the whole host, and a URI has no asterisk-form.
  const oldPath = target.path === '*' ? '/' : target.path;
  const path = redirect.path === null ? oldPath : replacePath(redirect.path, match, oldPath);
  return `${scheme}://${authority}${path}${target.query}`;
}

/**
 * Replaces the path, or the prefix that matched. Slashes at the end of the prefix and of the replacement do not count: `/a/b` becomes `/x/b`,
 * whether `/a` or `/a/` is replaced by `/x` or `/x/`. The replacement `/` removes the prefix.
 */
function replacePath({ kind, value }: PathReplacement, match: HttpMatch, path: string): string {
  if (kind === 'full') return value;
  const rest = path.slice(withoutTrailingSlash(match.path.value).length);
  const replaced = withoutTrailingSlash(value) + rest;
  return replaced === '' ? '/' : replaced;
}

function withoutTrailingSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}
