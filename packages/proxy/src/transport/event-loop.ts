// The event loop of a thread's sockets: one epoll instance, beside libuv's own loop.
//
// The loop runs in a `setImmediate`. It waits for events of its sockets and of libuv, whose epoll descriptor is one more entry in the epoll
// instance. It passes each event to the handler of its socket. It returns to libuv when libuv has an event, when no socket has an event, or
// after a short time, so that timers, messages and promises run as usual.
// A handler is found by descriptor and generation, so an event of a closed descriptor never reaches the socket that took its number.

import { countProgress } from './progress.ts';
import { EventPoll, isLibuvAlive, libuvDescriptor, libuvTimeoutMs, MAX_EVENTS } from './syscalls/event-poll.ts';
import { EPOLLIN } from './syscalls/layouts.ts';

/** The longest wait. A wait ends early when libuv has work, for example a message from another thread. */
const MAX_WAIT_MS = 1_000;
/**
 * The longest wait while no handle of libuv keeps the thread alive. Libuv then asks for no wait, so this wait grows by 1 ms with each idle
 * turn.
 */
const MAX_UNCERTAIN_WAIT_MS = 10;
/** How long one turn goes on handling events if each wait receives as many events as it can. */
const MAX_HANDLE_MS = 2;
/**
 * How long a run of the loop begins further turns while sockets have events and libuv has none. A return to libuv costs about as much as the
 * events of one connection, but timers, promises and immediates wait for it.
 */
const MAX_RUN_MS = 1;
/** The generation of the registration of libuv's descriptor. Sockets begin at 1. */
const LIBUV_GENERATION = 0;
const MAX_GENERATION = 0xffffffff;

/** A socket that is registered with the loop. */
export interface EventHandler {
  /** Handles the events of the socket, a set of `EPOLL…` flags. */
  onEvents(events: number): void;
}

/** A socket that has more to do in the next turn of the loop, for example because it has used up its read quantum. */
export interface Resumable {
  resume(): void;
}

/** A closed socket whose owner has not been notified yet. */
export interface Closing {
  emitClose(): void;
}

/** An object that collects work during a turn, for example datagrams that one system call sends. */
export interface Flushable {
  flush(): void;
}

interface Registration {
  readonly generation: number;
  readonly handler: EventHandler;
}

export class EventLoop {
  readonly #poll = new EventPoll();
  readonly #registrations: (Registration | undefined)[] = [];
  #registrationCount = 0;
  #generation = LIBUV_GENERATION;
  #resumable: Resumable[] = [];
  #closing: Closing[] = [];
  readonly #flushable: Flushable[] = [];
  #isScheduled = false;
  #isRunning = false;
  /** Whether libuv had an event in the current run. */
  #hasLibuvEvent = false;
  /** The number of consecutive turns in which no socket had an event. */
  #idleTurns = 0;
  #turn = 0;
  #eventCount = 0;
  /** The time at which the current wait returned, or -1 if the time was not needed since. */
  #waitedAt = -1;

  readonly #now: () => number;

  /** `now` returns milliseconds of a clock that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#poll.add(libuvDescriptor(), EPOLLIN, LIBUV_GENERATION);
  }

  /** The number of the current turn. In one turn, each socket reads at most once. */
  get turn(): number {
    return this.#turn;
  }

  /** How many events the last wait has received. 0 if the loop is not running. */
  get eventCount(): number {
    return this.#eventCount;
  }

  /**
   * The time in milliseconds of a monotonic clock. The handlers of the events that one wait receives share one reading of
   * the clock, which costs about as much as a small handler.
   */
  get nowMs(): number {
    if (!this.#isRunning) return this.#now();
    if (this.#waitedAt < 0) this.#waitedAt = this.#now();
    return this.#waitedAt;
  }

  /** Registers a socket for a set of `EPOLL…` events. Returns 0, or the negative errno of epoll_ctl(2). */
  register(descriptor: number, events: number, handler: EventHandler): number {
    this.#generation = this.#generation === MAX_GENERATION ? LIBUV_GENERATION + 1 : this.#generation + 1;
    const result = this.#poll.add(descriptor, events, this.#generation);
    if (result < 0) return result;
    // The entry may be that of a closed descriptor, see `release`.
    if (this.#registrations[descriptor] === undefined) this.#registrationCount += 1;
    this.#registrations[descriptor] = { generation: this.#generation, handler };
    this.#schedule();
    return 0;
  }

  /** Changes the events of a registered socket. */
  modify(descriptor: number, events: number): void {
    const registration = this.#registrations[descriptor];
    if (registration !== undefined) this.#poll.modify(descriptor, events, registration.generation);
  }

  /** Ends the registration of a socket. The caller must close the descriptor at once. */
  unregister(descriptor: number): void {
    if (this.#registrations[descriptor] === undefined) return;
    this.#registrations[descriptor] = undefined;
    this.#registrationCount -= 1;
  }

  /** Makes `handler` the handler of a registered socket. The new handler must end the registration with `release`. */
  handOver(descriptor: number, handler: EventHandler): void {
    const registration = this.#registrations[descriptor];
    if (registration !== undefined) this.#registrations[descriptor] = { generation: registration.generation, handler };
  }

  /**
   * Ends the registration of a socket that libuv owns. The descriptor may be closed already, and another socket may have its number.
   * Does nothing if that socket is registered with this loop.
   */
  release(descriptor: number, handler: EventHandler): void {
    if (this.#registrations[descriptor]?.handler !== handler) return;
    this.unregister(descriptor);
    this.#poll.delete(descriptor);
  }

  /** Calls `resume` of the item in the next turn. */
  resumeLater(item: Resumable): void {
    this.#resumable.push(item);
    this.#schedule();
  }

  /** Calls `emitClose` of the item after the current handler, or in the next turn if no handler is running. */
  closeLater(item: Closing): void {
    this.#closing.push(item);
    this.#schedule();
  }

  /** Calls `flush` of the item at the end of the current turn, or of the next turn if no handler is running. */
  flushLater(item: Flushable): void {
    this.#flushable.push(item);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isRunning) return;
    this.#isScheduled = true;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    this.#isRunning = true;
    this.#hasLibuvEvent = false;
    this.#runTurn(this.#waitMs());
    if (this.#mayContinue()) {
      const endsAt = this.nowMs + MAX_RUN_MS;
      do this.#runTurn(this.#waitMs());
      while (this.#mayContinue() && this.nowMs < endsAt);
    }
    this.#isRunning = false;
    this.#eventCount = 0;
    if (this.#registrationCount > 0 || this.#resumable.length > 0 || this.#closing.length > 0) this.#schedule();
  };

  #runTurn(waitMs: number): void {
    this.#turn += 1;
    this.#waitedAt = -1;
    this.#emitClosed();
    this.#resumeAll();
    this.#handleEvents(waitMs);
    while (this.#flushable.length > 0) this.#flushable.pop()?.flush();
  }

  /** Whether the next turn may begin without a return to libuv: libuv has no event, and a socket had one or has more to do. */
  #mayContinue(): boolean {
    if (this.#hasLibuvEvent) return false;
    return this.#resumable.length > 0 || (this.#idleTurns === 0 && this.#registrationCount > 0);
  }

  /**
   * Handles the events that are ready. If there are more than one wait receives, waits again for a short time, because a socket whose event
   * comes after thousands of others would otherwise also wait for what these sockets do in the next turns.
   */
  #handleEvents(waitMs: number): void {
    this.#handleEventsOfWait(waitMs);
    if (this.#eventCount < MAX_EVENTS) return;
    for (const endsAt = this.#now() + MAX_HANDLE_MS; this.#eventCount === MAX_EVENTS && this.#now() < endsAt; )
      this.#handleEventsOfWait(0);
  }

  #handleEventsOfWait(waitMs: number): void {
    const count = this.#poll.wait(waitMs);
    this.#waitedAt = -1;
    this.#eventCount = count;
    for (let index = 0; index < count; index += 1) this.#handle(index);
  }

  #handle(index: number): void {
    const registration = this.#registrations[this.#poll.descriptorAt(index)];
    const generation = this.#poll.generationAt(index);
    if (generation === LIBUV_GENERATION) this.#hasLibuvEvent = true;
    if (registration === undefined || registration.generation !== generation) return;
    this.#idleTurns = 0;
    countProgress();
    registration.handler.onEvents(this.#poll.eventsAt(index));
    this.#emitClosed();
  }

  #resumeAll(): void {
    if (this.#resumable.length === 0) return;
    const items = this.#resumable;
    this.#resumable = [];
    for (const item of items) {
      countProgress();
      item.resume();
      this.#emitClosed();
    }
  }

  #emitClosed(): void {
    while (this.#closing.length > 0) {
      const items = this.#closing;
      this.#closing = [];
      for (const item of items) item.emitClose();
    }
  }

  #waitMs(): number {
    const hasWork = this.#resumable.length > 0 || this.#flushable.length > 0;
    // The owner of a closed socket may start a timer that ends before the timers that libuv knows now.
    if (hasWork || this.#closing.length > 0 || this.#registrationCount === 0) return 0;
    // The first idle turn does not wait, because libuv usually has work that its next iteration completes.
    this.#idleTurns += 1;
    if (this.#idleTurns === 1) return 0;
    // Libuv counts the running immediate as pending work, so it would ask for no wait. Clearing an immediate corrects this.
    clearImmediate(setImmediate(doNothing));
    const timeout = libuvTimeoutMs();
    if (timeout === 0 && isLibuvAlive()) return 0;
    if (timeout === 0) return Math.min(MAX_UNCERTAIN_WAIT_MS, this.#idleTurns - 2);
    return timeout < 0 || timeout > MAX_WAIT_MS ? MAX_WAIT_MS : timeout;
  }
}

function doNothing(): void {}

/** The loop of this thread. */
export const eventLoop: EventLoop = new EventLoop();
