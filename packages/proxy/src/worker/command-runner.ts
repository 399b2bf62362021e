// Orders are followed one after the other, and for no more than about a millisecond of one turn of the event loop: behind
// a large table wait the other orders, never the connections.

import type { LazyRoutes } from './lazy-routes.ts';
import { unpackBatch } from './lazy-routes.ts';
import type { PackedTableCommand, SentCommand, WorkerCommand } from './messages.ts';

const MAX_RUN_MS_PER_TURN = 1;

export interface CommandRunnerOptions {
  apply(order: WorkerCommand): void;
  readonly lazyRoutes: Pick<LazyRoutes, 'add'>;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

export class CommandRunner {
  readonly #options: CommandRunnerOptions;
  #queue: SentCommand[] = [];
  #nextIndex = 0;
  /** Of the first of them. */
  #appliedBatches = 0;
  /** Orders have been followed in this turn of the event loop. */
  #isInTurn = false;
  #turnEndsAt = 0;

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
  }

  /** Orders wait for their turn. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** Follows it now when none waits and there is time left in this turn. */
  add(order: SentCommand): void {
    this.#queue.push(order);
    if (this.#queue.length > 1) return;
    if (!this.#isInTurn) this.#beginTurn();
    else if (this.#options.now() >= this.#turnEndsAt) return;
    this.#run();
  }

  #beginTurn(): void {
    this.#isInTurn = true;
    this.#turnEndsAt = this.#options.now() + MAX_RUN_MS_PER_TURN;
    // Runs after the sockets have had theirs.
    setImmediate(this.#runNextTurn);
  }

  readonly #runNextTurn = (): void => {
    this.#isInTurn = false;
    if (!this.isBehind) return;
    this.#beginTurn();
    this.#run();
  };

  #run(): void {
    do this.#step();
    while (this.isBehind && this.#options.now() < this.#turnEndsAt);
  }

  /** At least one in each turn. */
  #step(): void {
    const order = this.#queue[this.#nextIndex];
    if (order === undefined) return;
    if (order.kind === 'packed-table') this.#applyBatch(order);
    else {
      this.#removeFirst();
      this.#options.apply(order);
    }
  }

  #applyBatch(order: PackedTableCommand): void {
    const index = this.#appliedBatches;
    const sleeper = order.lazyServices?.[index];
    this.#appliedBatches += 1;
    if (this.#appliedBatches >= order.ends.length) this.#removeFirst();
    if (sleeper) this.#options.lazyRoutes.add(sleeper, order, index);
    else this.#options.apply(unpackBatch(order, index));
  }

  #removeFirst(): void {
    this.#appliedBatches = 0;
    this.#nextIndex += 1;
    if (this.#nextIndex < this.#queue.length) return;
    this.#queue = [];
    this.#nextIndex = 0;
  }
}
