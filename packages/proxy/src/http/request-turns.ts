// Shares a worker's time between the tenants whose clients send HTTP requests. In each turn of the event loop, the first
// requests of every tenant begin as they arrive. Further requests wait until all events of the turn are handled. Then the
// tenants with waiting requests take turns (round robin). While no connection waits, no method reads a clock or allocates
// memory.
import { countProgress } from '../transport/progress.ts';
import type { Turns } from '../transport/tcp-transport.ts';

/** How many requests of a tenant a worker begins before other tenants have their turn. */
export const MAX_REQUESTS_PER_TURN = 16;
/** How long the requests that wait may occupy one turn of the event loop. */
const SLICE_MS = 1;

/** A connection whose client has sent something that may be a request. Waits in the list of one tenant at a time. */
export interface TurnTaker {
  /** The next connection of the same tenant that waits. Written by `TenantTurns`. */
  nextWaiting: TurnTaker | undefined;
  /** Written by `TenantTurns`. */
  isWaiting: boolean;
  /** Called when it is the turn of the connection. Must not throw. */
  onTurn(): void;
}

export interface RequestTurnsOptions {
  readonly turns: Turns;
  /** Returns milliseconds of a clock that never goes back. */
  now(): number;
}

/** The turns of all tenants of one worker. */
export class RequestTurns {
  readonly turns: Turns;
  readonly #now: () => number;
  readonly #byTenant = new WeakMap<object, TenantTurns>();
  /** The tenants with connections that wait, in the order of their turns. */
  #first: TenantTurns | undefined;
  #last: TenantTurns | undefined;
  #isScheduled = false;

  constructor({ turns, now }: RequestTurnsOptions) {
    this.turns = turns;
    this.#now = now;
  }

  /** Returns the turns of a tenant. `tenant` is any object that stands for the tenant. */
  of(tenant: object): TenantTurns {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const created = new TenantTurns(this);
    this.#byTenant.set(tenant, created);
    return created;
  }

  /** Adds a tenant, which must not be in the list, behind all others. */
  append(tenant: TenantTurns): void {
    tenant.next = undefined;
    if (this.#last === undefined) this.#first = tenant;
    else this.#last.next = tenant;
    this.#last = tenant;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Not now, because the events that are not handled yet may be those of other tenants.
    this.turns.runAtEnd(this.#run);
  }

  /** Serves the tenants in turn until the slice ends. Further connections wait for the next turn of the event loop. */
  readonly #run = (): void => {
    const endsAt = this.#now() + SLICE_MS;
    do {
      const tenant = this.#first;
      if (tenant === undefined) break;
      this.#first = tenant.next;
      if (this.#first === undefined) this.#last = undefined;
      tenant.serve();
      if (tenant.hasWaiting) this.append(tenant);
    } while (this.#now() < endsAt);
    this.#isScheduled = this.#first !== undefined;
    if (this.#isScheduled) this.turns.runInNext(this.#run);
  };
}

/** The requests of one tenant in one worker. */
export class TenantTurns {
  /** The next tenant in the list of `RequestTurns`, which writes this field. */
  next: TenantTurns | undefined;
  readonly #owner: RequestTurns;
  /** The turn of the event loop for which `#left` counts. */
  #turn = -1;
  #left = 0;
  #isServing = false;
  #first: TurnTaker | undefined;
  #last: TurnTaker | undefined;

  constructor(owner: RequestTurns) {
    this.#owner = owner;
  }

  get hasWaiting(): boolean {
    return this.#first !== undefined;
  }

  /** How many more requests may begin in this turn. At least 0. */
  get left(): number {
    this.#renew();
    return this.#left < 0 ? 0 : this.#left;
  }

  /** Takes the turn for one request. Returns false if the connection must wait, and then calls its `onTurn` later. */
  tryTake(connection: TurnTaker): boolean {
    this.#renew();
    if (this.#left > 0 && this.#first === undefined) {
      this.#left -= 1;
      return true;
    }
    this.wait(connection);
    return false;
  }

  /** Counts further requests that one `tryTake` or `onTurn` has begun. */
  take(count: number): void {
    this.#left -= count;
  }

  /** Makes a connection wait for its turn. Does nothing if the connection waits already. */
  wait(connection: TurnTaker): void {
    if (connection.isWaiting) return;
    connection.isWaiting = true;
    connection.nextWaiting = undefined;
    const isFirst = this.#first === undefined;
    if (this.#last === undefined) this.#first = connection;
    else this.#last.nextWaiting = connection;
    this.#last = connection;
    if (isFirst && !this.#isServing) this.#owner.append(this);
  }

  /** Gives their turn to as many connections as may begin a request. Called by `RequestTurns`. */
  serve(): void {
    this.#isServing = true;
    this.#turn = this.#owner.turns.current;
    this.#left = MAX_REQUESTS_PER_TURN;
    while (this.#left > 0 && this.#first !== undefined) {
      const connection: TurnTaker = this.#first;
      this.#first = connection.nextWaiting;
      if (this.#first === undefined) this.#last = undefined;
      connection.nextWaiting = undefined;
      connection.isWaiting = false;
      this.#left -= 1;
      countProgress();
      connection.onTurn();
    }
    this.#isServing = false;
  }

  #renew(): void {
    const { current } = this.#owner.turns;
    if (this.#turn === current) return;
    this.#turn = current;
    this.#left = MAX_REQUESTS_PER_TURN;
  }
}
