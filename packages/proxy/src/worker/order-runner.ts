// Orders are followed one after the other, and for no more than about a millisecond of one turn of the event loop: behind
// a large table wait the other orders, never the connections.
import type { Order, PiecesOrder, SentOrder } from './messages.ts';
import { pieceOf } from './pieces.ts';
import type { Sleepers } from './sleepers.ts';

const TURN_MS = 1;

export interface OrderRunnerOptions {
  follow(order: Order): void;
  readonly sleepers: Pick<Sleepers, 'add'>;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

export class OrderRunner {
  readonly #options: OrderRunnerOptions;
  #waiting: SentOrder[] = [];
  #next = 0;
  /** Of the first of them. */
  #piecesFollowed = 0;
  /** Orders have been followed in this turn of the event loop. */
  #isInTurn = false;
  #turnEndsAt = 0;

  constructor(options: OrderRunnerOptions) {
    this.#options = options;
  }

  /** Orders wait for their turn. */
  get isBehind(): boolean {
    return this.#waiting.length > 0;
  }

  /** Follows it now when none waits and there is time left in this turn. */
  take(order: SentOrder): void {
    this.#waiting.push(order);
    if (this.#waiting.length > 1) return;
    if (!this.#isInTurn) this.#begin();
    else if (this.#options.now() >= this.#turnEndsAt) return;
    this.#run();
  }

  #begin(): void {
    this.#isInTurn = true;
    this.#turnEndsAt = this.#options.now() + TURN_MS;
    // Runs after the sockets have had theirs.
    setImmediate(this.#again);
  }

  readonly #again = (): void => {
    this.#isInTurn = false;
    if (!this.isBehind) return;
    this.#begin();
    this.#run();
  };

  #run(): void {
    do this.#step();
    while (this.isBehind && this.#options.now() < this.#turnEndsAt);
  }

  /** At least one in each turn. */
  #step(): void {
    const order = this.#waiting[this.#next];
    if (order === undefined) return;
    if (order.kind === 'pieces') this.#followPiece(order);
    else {
      this.#leave();
      this.#options.follow(order);
    }
  }

  #followPiece(order: PiecesOrder): void {
    const index = this.#piecesFollowed;
    const sleeper = order.sleepers?.[index];
    this.#piecesFollowed += 1;
    if (this.#piecesFollowed >= order.ends.length) this.#leave();
    if (sleeper) this.#options.sleepers.add(sleeper, order, index);
    else this.#options.follow(pieceOf(order, index));
  }

  #leave(): void {
    this.#piecesFollowed = 0;
    this.#next += 1;
    if (this.#next < this.#waiting.length) return;
    this.#waiting = [];
    this.#next = 0;
  }
}
