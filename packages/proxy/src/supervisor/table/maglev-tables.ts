// The Maglev tables of this node. The main thread computes one table for each Service port, in shared memory that all
// workers use. Without a table, workers choose endpoints by rendezvous hashing. While a table is older than the
// endpoints, workers choose an endpoint that is not in the table only if no other endpoint is left.
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
import { RoutesByPort } from './node-table.ts';

/**
 * The minimum time between two computations of a table. Computing takes milliseconds, so several changes of the
 * endpoints are combined.
 */
const MIN_RECOMPUTE_INTERVAL_MS = 100;

interface PortTable {
  readonly listeners: Set<RouteKey>;
  slots: SharedArrayBuffer | undefined;
  computedAt: number;
}

export interface MaglevTablesOptions {
  readonly routes: ReadonlyMap<RouteKey, Route>;
  readonly clock: Clock;
  readonly post: (command: WorkerCommand) => void;
}

export class MaglevTables {
  readonly #options: MaglevTablesOptions;
  readonly #tables = new RoutesByPort<PortTable>(() => ({
    listeners: new Set(),
    slots: undefined,
    computedAt: Number.NEGATIVE_INFINITY,
  }));
  /** The names of ports whose table is older than their endpoints, in the order in which the endpoints changed. */
  readonly #stale = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: MaglevTablesOptions) {
    this.#options = options;
  }

  /** To be called after the changed routes were sent to the workers. */
  onRoutesChanged(keys: readonly RouteKey[]): void {
    for (const key of keys) this.#assign(key, this.#options.routes.get(key));
    this.#schedule();
  }

  /**
   * Returns commands with the tables that are not stale. A stale table is posted to all workers after it is computed
   * again.
   */
  commandsForNewWorker(): WorkerCommand[] {
    return [...this.#tables.ports].flatMap(([name, port]) => (this.#stale.has(name) ? [] : [commandFor(port)]));
  }

  close(): void {
    this.#timer?.cancel();
    this.#stale.clear();
  }

  #assign(key: RouteKey, route: Route | undefined): void {
    const { name, left } = this.#tables.assign(key, route !== undefined && usesMaglev(route) ? route : undefined);
    if (left !== undefined) {
      if (!this.#tables.ports.has(left)) this.#stale.delete(left);
      this.#options.post({ kind: 'maglev', listeners: [key], slots: undefined });
    }
    if (name !== undefined) this.#stale.add(name);
  }

  /**
   * Schedules the computation of the next due table. Each table is computed in a separate turn of the event loop, so
   * that the main thread is never blocked for long.
   */
  #schedule(): void {
    const { clock } = this.#options;
    if (this.#timer !== undefined) return;
    const now = clock.monotonic();
    let dueAt = Number.POSITIVE_INFINITY;
    for (const name of this.#stale) {
      const { computedAt } = this.#tables.ports.get(name) as PortTable;
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
      const port = this.#tables.ports.get(name) as PortTable;
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

function commandFor({ listeners, slots }: PortTable): WorkerCommand {
  return { kind: 'maglev', listeners: [...listeners], slots };
}

/**
 * Computes the table for a route. Returns undefined for a single endpoint, which needs no table. Also returns undefined
 * for more than `MAX_MAGLEV_ENDPOINTS` endpoints, for which workers use rendezvous hashing.
 */
function slotsFor({ endpoints }: Route): SharedArrayBuffer | undefined {
  if (endpoints.length < 2 || endpoints.length > MAX_MAGLEV_ENDPOINTS) return undefined;
  const slots = new SharedArrayBuffer(MAGLEV_SLOTS * Uint16Array.BYTES_PER_ELEMENT);
  fillMaglevSlots(new Uint16Array(slots), endpoints.map(endpointKey));
  return slots;
}
