// An endpoint at an address and port that the fleet itself serves would lead a connection back to a proxy, and the proxy would connect to
// this endpoint again: one client would become thousands of connections. Such an endpoint is refused, with one exception: a Service keeps
// an endpoint that it used before a Service of another tenant got the port. Otherwise any tenant could take an endpoint on the host network
// from another tenant. If a program of that endpoint has the port, no proxy can bind the port.
import { type Endpoint, endpointKey, type NodeEntry, type Protocol } from '../table/entry.ts';
import { portKey } from './allocate/allocations.ts';
import type { Binding } from './allocate/port-allocations.ts';
import { MultiMap } from './multi-map.ts';
import type { ServiceRecord, ServiceRegistry } from './service-registry.ts';

/** Why an endpoint that the fleet serves is refused: the end of a sentence about its address and port. */
export const SERVED_BY_FLEET = 'is an address and port that Weir itself serves';

export interface ServedEndpointCheck {
  /** Returns why an endpoint is refused; undefined if the fleet does not serve its address and port. */
  readonly check: (endpoint: Endpoint, protocol: Protocol) => string | undefined;
  /** The `portKey` of each endpoint checked so far that is at an address of the fleet. */
  readonly ports: ReadonlySet<string>;
}

export class ServedEndpointIndex {
  readonly #services: Pick<ServiceRegistry, 'byUid'>;
  readonly #ownersAt: (binding: Binding) => readonly string[];
  /** The names of the nodes of the fleet, by each address that a proxy binds. */
  #nodesByAddress: ReadonlyMap<string, readonly string[]> = new Map();
  /** The Services with an endpoint at an address of the fleet, by `portKey`. */
  readonly #servicesByPort = new MultiMap<ServiceRecord>();
  readonly #portsByService = new Map<ServiceRecord, ReadonlySet<string>>();

  /** `ownersAt` returns the UIDs of the Services that own or share a binding. */
  constructor(services: Pick<ServiceRegistry, 'byUid'>, ownersAt: (binding: Binding) => readonly string[]) {
    this.#services = services;
    this.#ownersAt = ownersAt;
  }

  /** Sets the nodes of the fleet. The caller must check the endpoints of all Services again. */
  setNodes(nodes: readonly NodeEntry[]): void {
    const byAddress = new Map<string, string[]>();
    for (const { name, bindAddresses } of nodes)
      for (const address of bindAddresses) byAddress.set(address, [...(byAddress.get(address) ?? []), name]);
    this.#nodesByAddress = byAddress;
  }

  /** Returns a check of the endpoints of one Service. After the check, its `ports` must be passed to `setPorts`. */
  checkFor(record: ServiceRecord): ServedEndpointCheck {
    const ports = new Set<string>();
    return {
      ports,
      check: (endpoint, protocol) => {
        const { address, port } = endpoint;
        const nodes = this.#nodesByAddress.get(address);
        if (nodes === undefined) return undefined;
        ports.add(portKey({ port, protocol }));
        const owners = nodes.flatMap((node) => this.#ownersAt({ node, address, protocol, port }));
        if (owners.length === 0) return undefined;
        const isOwnTenant = owners.some((uid) => isOfSameTenant(this.#services.byUid(uid), record));
        return isOwnTenant || !isUsedBy(record, endpoint, protocol) ? SERVED_BY_FLEET : undefined;
      },
    };
  }

  /** Replaces the ports at which a Service has endpoints at addresses of the fleet. An empty set removes the Service. */
  setPorts(record: ServiceRecord, ports: ReadonlySet<string>): void {
    for (const port of this.#portsByService.get(record) ?? []) this.#servicesByPort.delete(port, record);
    for (const port of ports) this.#servicesByPort.add(port, record);
    if (ports.size === 0) this.#portsByService.delete(record);
    else this.#portsByService.set(record, ports);
  }

  /** Yields the Services with endpoints at addresses of the fleet that have one of these ports, by `portKey`. */
  *withEndpointsAt(ports: Iterable<string>): Iterable<ServiceRecord> {
    for (const port of ports) yield* this.#servicesByPort.get(port);
  }
}

/**
 * Reports whether two Services have the same tenant. Compares the memberships and not the names: while two policies claim one tenant name,
 * a disputed Service keeps its tenant name, and the other tenant has the same name.
 */
function isOfSameTenant(a: ServiceRecord | undefined, b: ServiceRecord): boolean {
  if (a === undefined) return false;
  if (a.service.namespace === b.service.namespace) return true;
  const [one, other] = [a.membership, b.membership];
  return one?.kind === 'tenant' && other?.kind === 'tenant' && one.tenant.name === other.tenant.name;
}

/** Reports whether the last table has the endpoint for the Service. */
function isUsedBy({ endpoints }: ServiceRecord, endpoint: Endpoint, protocol: Protocol): boolean {
  const key = endpointKey(endpoint);
  return endpoints.some(
    (entry) => entry.protocol === protocol && entry.endpoints.some((each) => endpointKey(each) === key),
  );
}
