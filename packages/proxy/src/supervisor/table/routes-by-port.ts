import type { Route, RouteKey } from '@weir/model/data-plane';

/**
 * The routes of this node, grouped by the port of the Service that they belong to. All routes of a port have the same endpoints, and so
 * share `P`: one Maglev table, or the health of the endpoints. Ports of different Services never share anything.
 */
export class RoutesByPort<P extends { readonly listeners: Set<RouteKey> }> {
  readonly #createPort: () => P;
  readonly #ports = new Map<string, P>();
  readonly #nameByRoute = new Map<RouteKey, string>();

  constructor(createPort: () => P) {
    this.#createPort = createPort;
  }

  /** The ports by name, which consists of the port's Service UID, protocol and number. */
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
   * Moves the route `key` to the port of `route`, or to no port if `route` is undefined. Returns the name of the port that it
   * joined, whether it was in another port (or none) before, and the name of the port that it left. A port without routes is removed.
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
