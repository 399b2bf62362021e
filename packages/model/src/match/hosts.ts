// Host names of Services: parsing, permission, and look-up by a client's server name.

/** A label by RFC 1123, as the API server requires for the hosts of an Ingress. International names use A-labels (`xn--…`). */
const HOST_LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';

/**
 * The grammar of a host in lower case. The last label must not consist of digits only, because the host would be, or look like, an
 * IPv4 address.
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
 * Whether a policy's `allowed` hosts permit a host; all in the form of `parseHost`. In a policy `*.example.com` permits all
 * subdomains at any depth, including wildcards, but not `example.com` itself. (In a Service, a wildcard matches one label only.)
 */
export function isHostAllowed(host: string, allowed: readonly string[]): boolean {
  return allowed.some((pattern) => (pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern));
}

/**
 * Returns the owner of the server name that a client sent, from a map of owners by host (in the form of `parseHost`); undefined if
 * no host matches. An exact host beats a wildcard. Case and a trailing dot are ignored. O(1).
 *
 * `*.example.com` matches exactly one more label, as in an Ingress and in a certificate (RFC 9525, 6.3): neither `example.com` nor
 * `a.b.example.com`. The Gateway API matches several labels, but then clients would be routed to Services whose wildcard
 * certificate cannot match, and tenants would own names that they did not think of; they can add `*.b.example.com`. At most one
 * wildcard matches a name, so no search for the longest match is needed.
 */
export function findHost<T>(owners: ReadonlyMap<string, T>, name: string): T | undefined {
  const host = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  // A client names a host, never a wildcard.
  if (host.startsWith('*')) return undefined;
  const exact = owners.get(host);
  const dot = host.indexOf('.');
  return exact !== undefined || dot < 1 ? exact : owners.get(`*${host.slice(dot)}`);
}
