// The maglev tables of this node: computed on the main thread into shared memory, one for all listeners of a Service's
// port and all workers. Until a table comes, and while one is older than the endpoints, workers choose right without it.
import {
  endpointKey,
  fillMaglevSlots,
  MAGLEV_SLOTS,
  MAX_MAGLEV_ENDPOINTS,
  type Route,
  type RouteKey,
  usesMaglev,
} from '@weir/model/data-plane';
import type { Clock, Timer } from '@weir/runtime';
import type { WorkerCommand } from '../../worker/messages.ts';

/** Computing one takes some milliseconds: endpoints that come and go all the time are taken together. */
const MIN_RECOMPUTE_INTERVAL_MS = 100;

interface PortTable {
  readonly listeners: Set<RouteKey>;
  slots: SharedArrayBuffer | undefined;
  computedAt: number;
}

export interface MaglevTablesOptions {
  readonly routes: ReadonlyMap<RouteKey, Route>;
  readonly clock: Clock;
  readonly post: (order: WorkerCommand) => void;
}

export class MaglevTables {
  readonly #options: MaglevTablesOptions;
  /** By Service and port: its listeners have the same endpoints. */
  readonly #ports = new Map<string, PortTable>();
  readonly #portByRoute = new Map<RouteKey, string>();
  /** Whose table is older than its endpoints; in the order in which they changed. */
  readonly #stale = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: MaglevTablesOptions) {
    this.#options = options;
  }

  /** These routes have changed, and the workers have been told. */
  onRoutesChanged(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#assign(key, this.#options.routes.get(key));
    this.#schedule();
  }

  /** For a worker that starts and knows the table of this moment; what is stale comes when it is computed. */
  commandsForNewWorker(): WorkerCommand[] {
    return [...this.#ports].flatMap(([name, port]) => (this.#stale.has(name) ? [] : [commandFor(port)]));
  }

  close(): void {
    this.#timer?.cancel();
    this.#stale.clear();
  }

  #assign(key: RouteKey, route: Route | undefined): void {
    const before = this.#portByRoute.get(key);
    const name = route !== undefined && usesMaglev(route) ? portName(route) : undefined;
    if (before !== undefined && before !== name) this.#drop(key, before);
    if (name === undefined) return;
    const port = this.#ports.get(name) ?? {
      listeners: new Set(),
      slots: undefined,
      computedAt: Number.NEGATIVE_INFINITY,
    };
    this.#ports.set(name, port);
    port.listeners.add(key);
    this.#portByRoute.set(key, name);
    this.#stale.add(name);
  }

  #drop(key: RouteKey, name: string): void {
    this.#portByRoute.delete(key);
    const port = this.#ports.get(name);
    port?.listeners.delete(key);
    if (port?.listeners.size === 0) {
      this.#ports.delete(name);
      this.#stale.delete(name);
    }
    this.#options.post({ kind: 'maglev', listeners: [key], slots: undefined });
  }

  /** The first that is due, at once; the next one in a later turn, so that the main thread is never away for long. */
  #schedule(): void {
    const { clock } = this.#options;
    if (this.#timer !== undefined) return;
    const now = clock.monotonic();
    let dueAt = Number.POSITIVE_INFINITY;
    for (const name of this.#stale) {
      const { computedAt } = this.#ports.get(name) as PortTable;
      dueAt = Math.min(dueAt, computedAt + MIN_RECOMPUTE_INTERVAL_MS);
      if (dueAt <= now) break;
    }
    if (dueAt === Number.POSITIVE_INFINITY) return;
    this.#timer = clock.setTimeout(
      () => {
        this.#timer = undefined;
        this.#computeOne();
        this.#schedule();
      },
      Math.max(0, dueAt - now),
    );
  }

  #computeOne(): void {
    const { clock, routes, post } = this.#options;
    const now = clock.monotonic();
    for (const name of this.#stale) {
      const port = this.#ports.get(name) as PortTable;
      if (port.computedAt + MIN_RECOMPUTE_INTERVAL_MS > now) continue;
      this.#stale.delete(name);
      const [key] = port.listeners;
      const route = key === undefined ? undefined : routes.get(key);
      port.computedAt = now;
      port.slots = route === undefined ? undefined : slotsFor(route);
      post(commandFor(port));
      return;
    }
  }
}

function portName({ service, listener }: Route): string {
  return `${service.uid}/${listener.protocol}/${listener.port}`;
}

function commandFor({ listeners, slots }: PortTable): WorkerCommand {
  return { kind: 'maglev', listeners: [...listeners], slots };
}

/** A choice of one needs no table, and of more than a table can number there is none: then rendezvous decides. */
function slotsFor({ endpoints }: Route): SharedArrayBuffer | undefined {
  if (endpoints.length < 2 || endpoints.length > MAX_MAGLEV_ENDPOINTS) return undefined;
  const slots = new SharedArrayBuffer(MAGLEV_SLOTS * Uint16Array.BYTES_PER_ELEMENT);
  fillMaglevSlots(new Uint16Array(slots), endpoints.map(endpointKey));
  return slots;
}
