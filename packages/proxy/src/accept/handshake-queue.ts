// Clients wait in this queue before each read of their PROXY header, ClientHello or first request head, and before each
// step of their TLS handshake. A signature takes up to milliseconds, and thousands of clients can send their
// ClientHellos at the same moment. So the worker serves only a few clients in each turn of the event loop, and the
// tenants take turns. TLS handshakes with endpoints wait in this queue too.
import { countProgress } from '../transport/progress.ts';
import type { Turns } from '../transport/tcp-transport.ts';

/** How long the handshakes of all tenants together may occupy one turn of the event loop. */
const SLICE_MS = 2;
/**
 * The time that a tenant gets before the next tenant has its turn. If a step takes longer, its tenant misses turns for
 * the excess time.
 */
const QUANTUM_MS = 0.5;
/** How many new handshakes of one tenant may wait, and the total length of their ClientHellos. */
export const MAX_WAITING_HANDSHAKES = 8_192;
const MAX_WAITING_BYTES = 16_777_216;

/** A preread or a handshake that waits for its next step. */
export interface WaitingHandshake {
  /** Whether the connection has ended while it waited. */
  readonly hasEnded: boolean;
  /** Processes what the client or the endpoint has sent. */
  step(): void;
}

export interface HandshakeQueueOptions {
  readonly turns: Turns;
  /** Returns milliseconds of a clock that never goes back. */
  now(): number;
}

export class HandshakeQueue {
  readonly #options: HandshakeQueueOptions;
  readonly #tenants = new Map<object, TenantHandshakes>();
  /** The tenants with waiting handshakes, in the order of their turns. */
  readonly #waitingTenants = new Fifo<TenantHandshakes>();
  #isRunning = false;
  /** The turn of the event loop in which the last slice began. The slice ends at `#sliceEndsAt`. */
  #sliceTurn = -1;
  #sliceEndsAt = 0;
  #isScheduled = false;

  constructor(options: HandshakeQueueOptions) {
    this.#options = options;
  }

  /**
   * Adds a new handshake, whose ClientHello has `bytes` bytes. Returns false if too many new handshakes of the tenant
   * wait. `tenant` is any object that identifies the tenant.
   */
  tryAdd(tenant: object, handshake: WaitingHandshake, bytes: number): boolean {
    const waiting = this.#waitingOf(tenant);
    if (waiting.fresh.length >= MAX_WAITING_HANDSHAKES || waiting.freshBytes + bytes > MAX_WAITING_BYTES) return false;
    waiting.fresh.push({ handshake, bytes });
    waiting.freshBytes += bytes;
    this.#start();
    return true;
  }

  /**
   * Adds a preread, a step of a handshake with an endpoint, or a handshake that has begun and has more input. All of
   * them are served before the tenant's new handshakes: a preread is short, a client with a request waits for the
   * handshake with the endpoint, and the worker has already signed for a handshake that has begun.
   */
  addBegun(tenant: object, handshake: WaitingHandshake): void {
    this.#waitingOf(tenant).begun.push(handshake);
    this.#start();
  }

  #waitingOf(tenant: object): TenantHandshakes {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const waiting = new TenantHandshakes(tenant);
    this.#tenants.set(tenant, waiting);
    this.#waitingTenants.push(waiting);
    return waiting;
  }

  /** Continues handshakes at once if this turn of the event loop has time left, otherwise in the next turn. */
  #start(): void {
    if (this.#isRunning) return;
    const { turns, now } = this.#options;
    if (this.#sliceTurn !== turns.current) {
      this.#sliceTurn = turns.current;
      this.#sliceEndsAt = now() + SLICE_MS;
    }
    this.#run();
    if (this.#waitingTenants.length === 0 || this.#isScheduled) return;
    this.#isScheduled = true;
    turns.runInNext(this.#onNextTurn);
  }

  readonly #onNextTurn = (): void => {
    this.#isScheduled = false;
    this.#start();
  };

  #run(): void {
    const { now } = this.#options;
    this.#isRunning = true;
    try {
      for (let startedAt = now(); startedAt < this.#sliceEndsAt; ) {
        const tenant = this.#nextTenant();
        if (tenant === undefined) return;
        countProgress();
        tenant.takeNext()?.step();
        const endedAt = now();
        tenant.creditMs -= endedAt - startedAt;
        startedAt = endedAt;
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /**
   * Returns the tenant whose turn it is, or undefined if no handshake waits (deficit round robin, Shreedhar and
   * Varghese 1996).
   */
  #nextTenant(): TenantHandshakes | undefined {
    for (;;) {
      const tenant = this.#waitingTenants.first;
      if (tenant === undefined) return undefined;
      if (tenant.isEmpty) {
        this.#waitingTenants.shift();
        this.#tenants.delete(tenant.key);
      } else if (tenant.creditMs > 0) return tenant;
      else {
        tenant.creditMs += QUANTUM_MS;
        this.#waitingTenants.shift();
        this.#waitingTenants.push(tenant);
      }
    }
  }
}

class TenantHandshakes {
  readonly key: object;
  readonly begun = new Fifo<WaitingHandshake>();
  readonly fresh = new Fifo<{ readonly handshake: WaitingHandshake; readonly bytes: number }>();
  freshBytes = 0;
  /** How long handshakes of this tenant may still run in this turn of the tenant. Negative after a long step. */
  creditMs = QUANTUM_MS;

  constructor(key: object) {
    this.key = key;
  }

  get isEmpty(): boolean {
    return this.begun.length === 0 && this.fresh.length === 0;
  }

  /** Removes and returns the next handshake, or returns undefined if this handshake has ended. */
  takeNext(): WaitingHandshake | undefined {
    let next = this.begun.shift();
    if (next === undefined) {
      const first = this.fresh.shift();
      this.freshBytes -= first?.bytes ?? 0;
      next = first?.handshake;
    }
    return next?.hasEnded === false ? next : undefined;
  }
}

/** A queue whose `shift` takes constant time. */
class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
