// Host names of Services: parsing, permission, and look-up by a client's server name.

/**
 * Matches one label of a host name (RFC 1123), as the API server requires for the hosts of an Ingress. International names use A-labels
 * (`xn--…`).
 */
const HOST_LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';

/**
 * The grammar of a host in lower case. The last label must not consist of digits only, because such a host is, or looks like, an IPv4
 * address.
 */
export const HOST_GRAMMAR: { readonly pattern: string; readonly forbiddenPattern: string; readonly maxLength: number } =
  {
    pattern: `^([*][.])?${HOST_LABEL}([.]${HOST_LABEL})*$`,
    forbiddenPattern: '(^|[.])[0-9]+$',
    maxLength: 253,
  };
const HOST = new RegExp(HOST_GRAMMAR.pattern);
const FORBIDDEN_HOST = new RegExp(HOST_GRAMMAR.forbiddenPattern);

/** Parses a host such as `shop.example.com` or `*.example.com` and returns it in lower case; undefined if the text is not a host. */
export function parseHost(text: string): string | undefined {
  if (text.length > HOST_GRAMMAR.maxLength) return undefined;
  const host = text.toLowerCase();
  return HOST.test(host) && !FORBIDDEN_HOST.test(host) ? host : undefined;
}

/**
 * Whether a policy permits a host. `host` and `allowed` (the hosts of the policy) are in the form that `parseHost` returns. In a policy,
 * `*.example.com` permits all subdomains at any depth, including wildcards, but not `example.com` itself. (In a Service, a wildcard matches
 * one label only.)
 */
export function isHostAllowed(host: string, allowed: readonly string[]): boolean {
  return allowed.some((pattern) => (pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern));
}

/**
 * Returns the owner of the server name that a client sent; undefined if no host matches. `owners` holds the owners by host, in the form
 * that `parseHost` returns. An exact host takes precedence over a wildcard. Ignores case and a trailing dot. Costs O(1).
 *
 * A wildcard matches exactly one label, as in an Ingress and in a certificate (RFC 9525, section 6.3): `*.example.com` matches
 * `a.example.com`, but neither `example.com` nor `a.b.example.com`. In the Gateway API, a wildcard matches several labels. With such
 * wildcards, clients would be routed to Services whose certificate cannot match, and tenants would own names that they did not think of. At
 * most one wildcard matches a name, so no search for the longest match is needed.
 */
export function findHost<T>(owners: Pick<ReadonlyMap<string, T>, 'get'>, name: string): T | undefined {
  const host = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  // A server name is never a wildcard.
  if (host.startsWith('*')) return undefined;
  const exact = owners.get(host);
  const dot = host.indexOf('.');
  return exact !== undefined || dot < 1 ? exact : owners.get(`*${host.slice(dot)}`);
}
