// The type of an HTTP route, whichever object it comes from: the annotations of a Service, an Ingress, or a rule of an HTTPRoute.

import type { HttpScheme } from './request-target.ts';

/** Requests for some hosts, what to change in the requests, and the Services that get the requests. A rule of an HTTPRoute is one route. */
export interface HttpRoute {
  /**
   * The identity of the route. If two routes match a request equally well and are equally old, the route whose id sorts first (by UTF-16 code
   * units) gets the request. So the ids of an HTTPRoute's rules must sort by namespace, name and position: `shop/web/003`.
   */
  readonly id: string;
  /** Name of the tenant. */
  readonly tenant: string;
  /** When the source was created, in milliseconds since the epoch. Older routes take precedence. */
  readonly createdAt: number;
  /** In the form that `parseHost` returns: `shop.example.com`, or `*.example.com` for one label. Empty for all hosts that no route names. */
  readonly hosts: readonly string[];
  /** The route gets a request if at least one item matches. Empty for all requests. */
  readonly matches: readonly HttpMatch[];
  readonly filters: readonly HttpFilter[];
  /**
   * Not empty. A backend that cannot be used keeps its share of the requests, which are answered with 500. If a filter redirects, no endpoint
   * gets the requests, and they count for the Services of the backends.
   */
  readonly backends: readonly HttpBackend[];
  readonly timeouts: HttpTimeouts;
}

/** Conditions that must all be true. */
export interface HttpMatch {
  readonly path: PathMatch;
  /** Null for all methods. Methods are case-sensitive (RFC 9110 §9.1). */
  readonly method: string | null;
  readonly headers: readonly FieldMatch[];
  readonly query: readonly FieldMatch[];
}

/**
 * `exact`: the path is equal to `value`. `prefix`: the segments of the path begin with the segments of `value`, so `/a` matches `/a`, `/a/`
 * and `/a/b`, but not `/ab`; a trailing slash of `value` has no effect. `value` is a path in its normal form (see `parsePathAndQuery`).
 */
export interface PathMatch {
  readonly kind: 'exact' | 'prefix';
  readonly value: string;
}

/** A condition for a header field (`name` in lower case) or a query parameter. */
export type FieldMatch =
  | { readonly kind: 'exact'; readonly name: string; readonly value: string }
  | { readonly kind: 'present'; readonly name: string };

export type HttpFilter = HeaderFilter | RedirectFilter | RewriteFilter;

/** Changes header fields. Each name (in lower case) occurs once in a filter. */
export interface HeaderFilter {
  readonly kind: 'request-headers' | 'response-headers';
  /** Fields that replace all fields of the same name. */
  readonly set: readonly HeaderField[];
  /** Fields that are appended to the fields of the same name. */
  readonly add: readonly HeaderField[];
  /** Names of fields that are removed. */
  readonly remove: readonly string[];
}

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

export const REDIRECT_STATUSES = [301, 302, 303, 307, 308] as const;

/** Answers with a redirect. What is null stays as it is in the request. */
export interface RedirectFilter {
  readonly kind: 'redirect';
  readonly scheme: HttpScheme | null;
  readonly host: string | null;
  /** Null for the default port of `scheme`, or for the listener's port if `scheme` is null too. */
  readonly port: number | null;
  readonly path: PathReplacement | null;
  readonly status: (typeof REDIRECT_STATUSES)[number];
}

/** Changes the request that the endpoint gets. What is null stays as it is in the request. */
export interface RewriteFilter {
  readonly kind: 'rewrite';
  readonly host: string | null;
  readonly path: PathReplacement | null;
}

/** `full`: `value` becomes the path. `prefix`: `value` takes the place of the prefix that matched. The query stays. */
export interface PathReplacement {
  readonly kind: 'full' | 'prefix';
  readonly value: string;
}

/** A port of a Service. */
export interface HttpBackend {
  /** UID of the Service. */
  readonly service: string;
  readonly port: number;
  /** The share of the requests, relative to the sum of all weights. A backend of weight 0 gets no requests. */
  readonly weight: number;
}

export interface HttpTimeouts {
  /** From the first byte of the request to the last byte of the answer; null for no limit. */
  readonly requestMs: number | null;
  /** From the request to an endpoint to the last byte of its answer; null for no limit. */
  readonly backendRequestMs: number | null;
}
