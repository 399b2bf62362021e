// Host names of Services: how one is written, and which of many a client asks for.

const MAX_HOST_LENGTH = 253;
/** RFC 1123, as the API server has it for the hosts of an Ingress. Other scripts are written in A-labels (`xn--…`). */
const HOST_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A host as a tenant writes it, such as `shop.example.com` or `*.example.com`: in lower case, or undefined when it is none.
 * A last label of digits is refused: it would be an IPv4 address, or be taken for one.
 */
export function parseHost(text: string): string | undefined {
  const host = text.toLowerCase();
  const name = host.startsWith('*.') ? host.slice(2) : host;
  if (host.length > MAX_HOST_LENGTH) return undefined;
  const labels = name.split('.');
  if (!labels.every((label) => HOST_LABEL.test(label)) || /^[0-9]+$/.test(labels.at(-1) ?? '')) return undefined;
  return host;
}

/**
 * Whether what a policy allows holds a host; both as `parseHost` writes them. `*.example.com` holds whatever is below, at any
 * depth, wildcards included, and not `example.com` itself: it says who may claim a name, not which names a claim is for.
 */
export function isHostAllowed(host: string, allowed: readonly string[]): boolean {
  return allowed.some((each) => (each.startsWith('*.') ? host.endsWith(each.slice(1)) : host === each));
}

export interface HostTable<T> {
  /**
   * What the name that a client sent belongs to; undefined: to nobody. An exact host beats a wildcard. Case and one dot at the
   * end do not matter; names in other scripts are expected in A-labels, as clients send them.
   */
  find(name: string): T | undefined;
}

/**
 * Finds among hosts of `parseHost` with what each belongs to, such as the UID of a Service; where a host comes twice, the
 * first counts. O(1) per name. Law: agrees with a linear search.
 *
 * `*.example.com` is for exactly one label more, as in an Ingress and in a certificate (RFC 9525, 6.3): not `example.com`, not
 * `a.b.example.com`. The Gateway API lets it stand for several, but then clients would be led where no certificate of that
 * name can satisfy them, and what a tenant did not think of would be theirs; who wants it says `*.b.example.com`. Hence no two
 * wildcards are for the same name, and the longest one wins without a search.
 */
export function compileHosts<T>(hosts: Iterable<readonly [host: string, owner: T]>): HostTable<T> {
  const owners = new Map<string, T>();
  for (const [host, owner] of hosts) if (!owners.has(host)) owners.set(host, owner);
  return {
    find: (name) => findHost(owners, name),
  };
}

/** What the name that a client sent belongs to, of owners by host: as `HostTable.find`. */
export function findHost<T>(owners: ReadonlyMap<string, T>, name: string): T | undefined {
  const host = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  // A client has no wildcard to ask for.
  if (host.startsWith('*')) return undefined;
  const exact = owners.get(host);
  const dot = host.indexOf('.');
  return exact !== undefined || dot < 1 ? exact : owners.get(`*${host.slice(dot)}`);
}
