import type { Route, RouteKey } from '@weir/model/data-plane';

/**
 * The routes of this node, grouped by Service port. All routes of a Service port have the same endpoints, so they share
 * one object of type `P`, for example a Maglev table or the health of the endpoints. Ports of different Services share
 * nothing.
 */
export class RoutesByPort<P extends { readonly listeners: Set<RouteKey> }> {
  readonly #createPort: () => P;
  readonly #ports = new Map<string, P>();
  readonly #nameByRoute = new Map<RouteKey, string>();

  constructor(createPort: () => P) {
    this.#createPort = createPort;
  }

  /** The ports by name. A name consists of the UID of the Service, the protocol and the port number. */
  get ports(): ReadonlyMap<string, P> {
    return this.#ports;
  }

  nameOf(key: RouteKey): string | undefined {
    return this.#nameByRoute.get(key);
  }

  portOf(key: RouteKey): P | undefined {
    return this.#ports.get(this.#nameByRoute.get(key) ?? '');
  }

  /**
   * Moves the route with this key to the port of `route`, or removes it from its port if `route` is undefined. A port
   * without routes is removed. Returns the name of the route's port, whether the route has just joined this port, and
   * the name of the port that the route left.
   */
  assign(key: RouteKey, route: Route | undefined): PortAssignment {
    const before = this.#nameByRoute.get(key);
    const name = route && portName(route);
    if (before === name) return { name, isNew: false, left: undefined };
    if (before !== undefined) this.#leave(key, before);
    if (name !== undefined) {
      const port = this.#ports.get(name) ?? this.#createPort();
      this.#ports.set(name, port);
      port.listeners.add(key);
      this.#nameByRoute.set(key, name);
    }
    return { name, isNew: name !== undefined, left: before };
  }

  #leave(key: RouteKey, name: string): void {
    this.#nameByRoute.delete(key);
    const port = this.#ports.get(name);
    port?.listeners.delete(key);
    if (port?.listeners.size === 0) this.#ports.delete(name);
  }
}

export interface PortAssignment {
  readonly name: string | undefined;
  readonly isNew: boolean;
  readonly left: string | undefined;
}

function portName({ service, listener }: Route): string {
  return `${service.uid}/${listener.protocol}/${listener.port}`;
}
