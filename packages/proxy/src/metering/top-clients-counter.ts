// Counts in one worker which clients of each tenant have the most bytes and connections, if the operator asks for it.
// Nothing is stored: the counts of a client last at most ten minutes.
import {
  ClientSketch,
  clientKeyFor,
  mergeTenantClients,
  type ServiceEntry,
  type TenantClients,
} from '@weir/model/data-plane';

/** Results cover the current and the previous window. All proxies begin their windows at the same time. */
const WINDOW_MS = 300_000;
/** The maximum number of tenants that are counted in a window. A tenant takes at most about 50 KB. */
const MAX_TENANTS = 256;

interface Sketches {
  readonly bytes: ClientSketch;
  readonly connections: ClientSketch;
}

type Window = Map<string, Sketches>;

export class TopClientsCounter {
  readonly #wallClock: () => number;
  #window = 0;
  #present: Window = new Map();
  #before: Window = new Map();

  /** `wallClock` returns milliseconds since the epoch. */
  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  /** Adds bytes or connections of a client to the tenant of the Service. `client` is from `clientNameFor`. */
  add(kind: keyof Sketches, { tenant, uid }: ServiceEntry, { client, amount }: ClientAmount): void {
    this.#advanceWindow();
    const name = tenant ?? uid;
    let sketches = this.#present.get(name);
    if (sketches === undefined) {
      if (this.#present.size >= MAX_TENANTS) return;
      sketches = { bytes: new ClientSketch(), connections: new ClientSketch() };
      this.#present.set(name, sketches);
    }
    sketches[kind].add(client, amount);
  }

  resultFor(tenant: string): TenantClients {
    this.#advanceWindow();
    const since = (this.#window - 1) * WINDOW_MS;
    return mergeTenantClients([resultOf(this.#before.get(tenant), since), resultOf(this.#present.get(tenant), since)]);
  }

  #advanceWindow(): void {
    const window = Math.floor(this.#wallClock() / WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#present : new Map();
    this.#present = new Map();
    this.#window = window;
  }
}

interface ClientAmount {
  readonly client: string;
  readonly amount: number;
}

/** Returns the name under which a client is counted: its IPv4 address, or the /64 network of its IPv6 address. */
export function clientNameFor(address: string): string {
  const key = clientKeyFor(address);
  return key.includes(':') ? `${key}::/64` : key;
}

function resultOf(sketches: Sketches | undefined, since: number): TenantClients {
  const { bytes = new ClientSketch(), connections = new ClientSketch() } = sketches ?? {};
  return { since, bytes: bytes.result, connections: connections.result };
}
