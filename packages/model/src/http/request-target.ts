// Decides what the target and the Host of a request mean. HTTP/1.1 and HTTP/2 requests are routed by the result, and the endpoint gets the
// texts of the result, so what is matched is what is sent.
import { type Authority, type AuthorityRefusal, isSameAuthority, parseAuthority } from './authority.ts';
import { type PathAndQuery, type PathRefusal, parsePathAndQuery, splitPathAndQuery } from './path.ts';

export type HttpScheme = 'http' | 'https';

/** RFC 9110 §4.2.1 and §4.2.2. */
export const DEFAULT_HTTP_PORTS: Readonly<Record<HttpScheme, number>> = { http: 80, https: 443 };

export interface RequestTarget {
  /** The scheme of a target in absolute-form; undefined for the other forms. */
  readonly scheme: HttpScheme | undefined;
  /** In lower case and without a trailing dot; an IPv6 address in brackets; empty if the client named no host. */
  readonly host: string;
  /** Undefined if the client named no port. */
  readonly port: number | undefined;
  /** What is sent to the endpoint as Host: the host and the port that the client named. */
  readonly authority: string;
  /** Begins with `/`, in its normal form if a route uses it; or `*` for `OPTIONS *`. */
  readonly path: string;
  /** Empty, or the query with its `?`, exactly as the client sent it. */
  readonly query: string;
  /** What is sent to the endpoint as request target: `path` followed by `query`. */
  readonly text: string;
}

export type RequestTargetRefusal =
  | AuthorityRefusal
  | PathRefusal
  | 'target-too-long'
  | 'invalid-target'
  | 'unsupported-scheme'
  | 'host-mismatch'
  | 'connect';

/** Which hosts have routes that use the path of a request. */
export interface PathUse {
  /** `host` is a text of `RequestTarget.host`. */
  usesPath(host: string): boolean;
}

/** The status code that answers a refused request. */
export const REQUEST_TARGET_REFUSAL_STATUS: Readonly<Record<RequestTargetRefusal, number>> = {
  'invalid-host': 400,
  userinfo: 400,
  'invalid-character': 400,
  'invalid-percent-encoding': 400,
  'encoded-control': 400,
  'encoded-slash': 400,
  backslash: 400,
  fragment: 400,
  'dot-segment-with-parameter': 400,
  'above-root': 400,
  // RFC 9110 §15.5.15.
  'target-too-long': 414,
  'invalid-target': 400,
  'unsupported-scheme': 400,
  'host-mismatch': 400,
  // RFC 9110 §9.1: 501 answers a method that a server does not implement for any target.
  connect: 501,
};

export const MAX_REQUEST_TARGET_BYTES = 8192;

/**
 * Returns the meaning of a request target, or why the request is refused. `host` is the value of the Host field or of `:authority`, or empty
 * without either; the parser of HTTP/1.1 heads refuses a missing Host. All texts have one character per byte. Where no route uses the path,
 * the endpoint gets the path as the client sent it: an encoded slash, for example, may have a meaning for the endpoint.
 *
 * - RFC 9112 §3.2.1: the endpoint gets the target in origin-form; `parsePathAndQuery` says how path and query are normalised.
 * - RFC 9112 §3.2.2: the authority of an absolute-form takes precedence over Host; a Host with another meaning is refused.
 * - RFC 9112 §3.2.3: the authority-form and its method CONNECT are refused.
 * - RFC 9112 §3.2.4: the asterisk-form is valid for OPTIONS only, and an absolute-form of OPTIONS without a path means the asterisk-form.
 * - RFC 9110 §4.2.3: an empty path of an absolute-form is `/`; the default port of the scheme equals no port.
 * - RFC 9110 §4.2.1: an absolute-form without a host is refused.
 *
 * `authority` and `text` are the same strings as `host` and `target` of the input if nothing had to change.
 */
export function parseRequestTarget(
  method: string,
  target: string,
  host: string,
  routes: PathUse = EVERY_HOST,
): RequestTarget | RequestTargetRefusal {
  if (target.length > MAX_REQUEST_TARGET_BYTES) return 'target-too-long';
  if (method === 'CONNECT') return 'connect';
  const authority = parseAuthority(host);
  if (typeof authority === 'string') return authority;
  if (target.charCodeAt(0) === 0x2f) {
    const parsed = routes.usesPath(authority.host) ? parsePathAndQuery(target) : splitPathAndQuery(target);
    return typeof parsed === 'string' ? parsed : requestTarget(parsed, authority, undefined);
  }
  if (target === '*') {
    // RFC 9112 §3.2.4: the asterisk-form is only used for a server-wide OPTIONS request.
    return method === 'OPTIONS' ? requestTarget(ASTERISK, authority, undefined) : 'invalid-target';
  }
  return parseAbsoluteForm({ method, target, host: authority }, routes);
}

const EVERY_HOST: PathUse = { usesPath: () => true };
const ASTERISK: PathAndQuery = { path: '*', query: '', text: '*' };

function requestTarget(
  { path, query, text }: PathAndQuery,
  authority: Authority,
  scheme: HttpScheme | undefined,
): RequestTarget {
  return { scheme, host: authority.host, port: authority.port, authority: authority.text, path, query, text };
}

/** The scheme, the authority, and the rest of a URI (RFC 3986 §3). */
const ABSOLUTE_FORM = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is;

interface AbsoluteForm {
  readonly method: string;
  readonly target: string;
  /** The Host. */
  readonly host: Authority;
}

function parseAbsoluteForm(
  { method, target, host }: AbsoluteForm,
  routes: PathUse,
): RequestTarget | RequestTargetRefusal {
  const uri = ABSOLUTE_FORM.exec(target);
  if (uri === null) return 'invalid-target';
  const scheme = (uri[1] as string).toLowerCase();
  if (scheme !== 'http' && scheme !== 'https') return 'unsupported-scheme';
  const authority = parseAuthority(uri[2] as string);
  if (typeof authority === 'string') return authority;
  // RFC 9110 §4.2.1: a recipient must reject an `http` URI with an empty host.
  if (authority.host === '') return 'invalid-host';
  // RFC 9112 §3.2.2 gives precedence to the target. A different Host is refused, because programs that read the request before or after
  // Weir may believe the Host.
  if (host.host !== '' && !isSameAuthority(authority, host, DEFAULT_HTTP_PORTS[scheme])) return 'host-mismatch';
  const rest = uri[3] as string;
  // RFC 9112 §3.2.4: without a path and a query, the last proxy sends the asterisk-form.
  if (rest === '' && method === 'OPTIONS') return requestTarget(ASTERISK, authority, scheme);
  // RFC 9110 §4.2.3: an empty path is equivalent to `/`.
  const text = rest.startsWith('/') ? rest : `/${rest}`;
  const parsed = routes.usesPath(authority.host) ? parsePathAndQuery(text) : splitPathAndQuery(text);
  return typeof parsed === 'string' ? parsed : requestTarget(parsed, authority, scheme);
}
