// Finds the Service of each request by its host and path. If the Services of a host are chosen by path, the endpoint
// receives the normal form of the target, so that the endpoint sees the same path that was matched.
import {
  type HeaderEdit,
  type HttpMatch,
  hasSameCredentials,
  isBackend,
  type ListenerKey,
  type Matcher,
  type PathUse,
  parseRequestTarget,
  REQUEST_TARGET_REFUSAL_STATUS,
  type RedirectFilter,
  type RequestTarget,
  type Route,
  type RoutedRequest,
  type RouteFilters,
  type RouteMatch,
  type RouteTarget,
  rewriteRequest,
  terminatingTlsPort,
} from '@weir/model/data-plane';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { UpstreamRegistry } from '../upstream/upstream-registry.ts';
import { FIELD, type HeadFields } from './h1/head-fields.ts';
import { METHOD, METHOD_NAMES } from './h1/methods.ts';
import type { ErrorReason } from './passes/error-answer.ts';
import { type CompiledFilters, compileHeaderFilters } from './passes/header-filters.ts';
import type { RequestHead } from './passes/request-context.ts';

/** Where a request goes, and how its head changes. */
export interface RoutedTo {
  readonly upstream: Upstream;
  /** Undefined if the endpoint receives the target as the client sent it. */
  readonly targetRewrite: Uint8Array | undefined;
  /** Undefined if the endpoint receives the Host that the client sent. */
  readonly hostRewrite: Uint8Array | undefined;
  readonly requestFilters: CompiledFilters | undefined;
  readonly responseFilters: CompiledFilters | undefined;
  /** Undefined if an endpoint gets the request. */
  readonly redirect: RouteRedirect | undefined;
  /** The time limit of the HTTP route, besides that of the Service. Undefined for no limit. */
  readonly timeoutMs: number | undefined;
  /** Why the Service does not admit the request. Undefined until the caller sets it. */
  refusal: ErrorReason | undefined;
}

/** A redirect that a filter of the route asks for, and the request to which it applies. */
export interface RouteRedirect {
  readonly filter: RedirectFilter;
  readonly match: HttpMatch;
  readonly target: RequestTarget;
}

/** The connection that carries a request. */
export interface RoutedConnection {
  readonly upstream: Upstream;
  readonly info: Pick<DownstreamInfo, 'tls'>;
  /** Whether the request is the first one, so that the listener may have routed it to `upstream`. */
  readonly isFirstRequest: boolean;
}

export interface RequestRouterOptions {
  readonly listener: ListenerKey;
  readonly matcher: Matcher;
  readonly upstreams: Pick<UpstreamRegistry, 'get'>;
  /** Returns a number in [0, 1), which chooses a backend of an HTTP route. */
  readonly random: () => number;
}

/** Routes the requests of one listener. */
export class RequestRouter {
  readonly #options: RequestRouterOptions;

  constructor(options: RequestRouterOptions) {
    this.#options = options;
  }

  /** Whether connections without TLS carry HTTP requests of the Services that share the listener. */
  get sharesPlainHttp(): boolean {
    return this.#options.matcher.listeners.get(this.#options.listener)?.sharesPlainHttp === true;
  }

  /**
   * Returns where a request goes, or why it is refused. The result is valid until the next call. `from` is undefined while
   * the listener routes the first request of a connection without TLS.
   */
  route(head: RequestHead, from: RoutedConnection | undefined): RoutedTo | ErrorReason {
    const { listener, matcher, upstreams, random } = this.#options;
    const routes = matcher.listeners.get(listener);
    if (routes === undefined) return 'no-route';
    const own = routes.exclusive;
    if (own !== undefined && getsEveryRequest(own)) return unchanged(upstreams.get(own.key));
    const host = hostOf(head);
    const target = requestTargetOf(head, host, routes);
    if (typeof target === 'string') return target;
    const isTls = from?.info.tls !== undefined;
    // With TLS, the server name has chosen the upstream of the connection, without the weights of the backends.
    const chosen = !isTls && from?.isFirstRequest === true ? from.upstream.route.key : undefined;
    const found = routes.findByRequest(requested.with(head, target), random, chosen);
    const route = found?.route;
    if (isTls && !this.#belongsTo(from.upstream, target, route)) return 'misdirected-request';
    if (found === undefined) return 'no-route';
    if (route === undefined) return 'no-backend';
    if (isTls !== (terminatingTlsPort(route) !== undefined)) return 'no-route';
    const upstream = this.#upstreamOf(route, found.target);
    return changed(upstream, head, { host, target, match: found.match, timeoutMs: found.target.timeoutMs });
  }

  /**
   * Whether a request may use the TLS connection of another request. RFC 9110 §7.4: the certificate and the client's
   * certificate were chosen for the server name, so the Service of the request must have the same certificates and
   * client CAs, or share the host.
   */
  #belongsTo(connection: Upstream, { host, scheme }: RequestTarget, found: Route | undefined): boolean {
    if (scheme === 'http') return false;
    if (found === undefined) return this.#servesHost(connection, host);
    if (hasSameCredentials(found, connection.route)) return true;
    // Services that share a host may have different certificates for the host, see `claimConflictBetween`.
    return this.#servesHost(connection, host) && isSharedWith(found, connection.route);
  }

  #servesHost(connection: Upstream, host: string): boolean {
    const { route } = connection;
    if (!isBackend(route)) return connection.servesHost(host);
    // HTTP routes name the hosts of a backend.
    const { listener, matcher } = this.#options;
    const owners = matcher.listeners.get(listener)?.routesOf(host) ?? [];
    return owners.some(({ key }) => key === route.key);
  }

  /** Returns the upstream of the route. Looks the upstream up once, and again after each change of the route. */
  #upstreamOf(route: Route, target: RouteTarget): Upstream | undefined {
    const known = target.cached as Upstream | undefined;
    if (known?.route === route) return known;
    const upstream = this.#options.upstreams.get(route.key);
    target.cached = upstream;
    return upstream;
  }
}

function getsEveryRequest({ settings }: Route): boolean {
  return settings.hosts.length === 0 && settings.pathPrefix === undefined;
}

/** Whether both Services belong to one namespace, and expect client certificates of the same CAs. */
function isSharedWith(one: Pick<Route, 'service' | 'settings'>, other: typeof one): boolean {
  return (
    one.service.namespace === other.service.namespace &&
    one.settings.tls?.clientCaSecret === other.settings.tls?.clientCaSecret
  );
}

const STATUS_REASONS: Readonly<Record<number, ErrorReason>> = { 414: 'target-too-long', 501: 'not-implemented' };

/** Returns the value of Host; empty without Host. */
function hostOf({ fields }: RequestHead): string {
  const index = fields.indexOf(FIELD.host);
  return index < 0 ? '' : latin1(fields.bytes, fields.valueStart[index] as number, fields.valueEnd[index] as number);
}

function requestTargetOf(head: RequestHead, host: string, routes: PathUse): RequestTarget | ErrorReason {
  const { bytes } = head.fields;
  const target = parseRequestTarget(methodOf(head), latin1(bytes, head.targetStart, head.targetEnd), host, routes);
  if (typeof target !== 'string') return target;
  return STATUS_REASONS[REQUEST_TARGET_REFUSAL_STATUS[target]] ?? 'invalid-request';
}

function methodOf({ methodId, methodStart, methodEnd, fields }: RequestHead): string {
  return methodId === METHOD.other ? latin1(fields.bytes, methodStart, methodEnd) : (METHOD_NAMES[methodId] as string);
}

class RequestOfHead implements RoutedRequest {
  method = '';
  host = '';
  path = '';
  query = '';
  #fields: HeadFields | undefined;
  /**
   * For each name in lower case, the index of the first field. A value replaces its index after the first read, because
   * thousands of routes may read the value.
   */
  #firstFields: Map<string, number | string> | undefined;

  /** Replaces the request. */
  with(head: RequestHead, { host, path, query }: RequestTarget): this {
    this.method = methodOf(head);
    this.host = host;
    this.path = path;
    this.query = query;
    this.#fields = head.fields;
    this.#firstFields = undefined;
    return this;
  }

  header(name: string): string | undefined {
    const fields = this.#fields;
    if (fields === undefined) return undefined;
    this.#firstFields ??= firstFieldsOf(fields);
    const found = this.#firstFields.get(name);
    if (typeof found !== 'number') return found;
    const value = latin1(fields.bytes, fields.valueStart[found] as number, fields.valueEnd[found] as number);
    this.#firstFields.set(name, value);
    return value;
  }
}

/** The request that is routed now. One object for all requests of this thread. */
const requested = new RequestOfHead();

/** Returns the indexes of the fields by name in lower case. Of several fields with one name, the first counts. */
function firstFieldsOf({ bytes, count, nameStart, nameEnd }: HeadFields): Map<string, number | string> {
  const indexes = new Map<string, number | string>();
  for (let index = 0; index < count; index += 1) {
    const name = latin1(bytes, nameStart[index] as number, nameEnd[index] as number).toLowerCase();
    if (!indexes.has(name)) indexes.set(name, index);
  }
  return indexes;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The last result of this thread. The caller reads it before the next request. */
const result: Mutable<Omit<RoutedTo, 'upstream'>> & { upstream: Upstream | undefined } = {
  upstream: undefined,
  targetRewrite: undefined,
  hostRewrite: undefined,
  requestFilters: undefined,
  responseFilters: undefined,
  redirect: undefined,
  timeoutMs: undefined,
  refusal: undefined,
};

function unchanged(upstream: Upstream | undefined): RoutedTo | ErrorReason {
  result.upstream = upstream;
  result.targetRewrite = undefined;
  result.hostRewrite = undefined;
  result.requestFilters = undefined;
  result.responseFilters = undefined;
  result.redirect = undefined;
  result.timeoutMs = undefined;
  result.refusal = undefined;
  return upstream === undefined ? 'no-route' : (result as RoutedTo);
}

interface MatchedRequest {
  /** The value of Host that the client sent. */
  readonly host: string;
  readonly target: RequestTarget;
  readonly match: RouteMatch;
  readonly timeoutMs: number | undefined;
}

function changed(
  upstream: Upstream | undefined,
  head: RequestHead,
  { host, target, match: { match, filters }, timeoutMs }: MatchedRequest,
): RoutedTo | ErrorReason {
  const sent = filters.rewrite === undefined ? target : rewriteRequest(filters.rewrite, match, target);
  result.upstream = upstream;
  result.targetRewrite = isPathOf(head, sent.text) ? undefined : Buffer.from(sent.text, 'latin1');
  result.hostRewrite = sent.authority === host ? undefined : Buffer.from(sent.authority, 'latin1');
  result.requestFilters = filtersOf(filters, 'requestHeaders');
  result.responseFilters = filtersOf(filters, 'responseHeaders');
  result.redirect = filters.redirect && { filter: filters.redirect, match, target };
  result.timeoutMs = timeoutMs;
  result.refusal = undefined;
  return upstream === undefined ? 'no-route' : (result as RoutedTo);
}

/** Whether the path and query in the head are this text. */
function isPathOf({ fields, targetForm, pathStart, targetEnd }: RequestHead, text: string): boolean {
  if (targetForm !== 'origin' || targetEnd - pathStart !== text.length) return false;
  for (let index = 0; index < text.length; index += 1)
    if (fields.bytes[pathStart + index] !== text.charCodeAt(index)) return false;
  return true;
}

const COMPILED_FILTERS = new WeakMap<readonly HeaderEdit[], CompiledFilters>();

function filtersOf(filters: RouteFilters, kind: 'requestHeaders' | 'responseHeaders'): CompiledFilters | undefined {
  const edits = filters[kind];
  if (edits.length === 0) return undefined;
  const known = COMPILED_FILTERS.get(edits);
  if (known !== undefined) return known;
  const { compiled } = compileHeaderFilters(edits);
  COMPILED_FILTERS.set(edits, compiled);
  return compiled;
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.prototype.latin1Slice.call(bytes, start, end);
}
