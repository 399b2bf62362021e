// Orders on their way to one worker. While it keeps up they are sent as they come; while it lags they wait here and are
// merged, so that a table that changes faster than a worker can follow costs neither memory nor ever more delay.
import type { Order } from '../worker/messages.ts';
import { mergeOrders } from './merge-orders.ts';

/** So many marks may be on their way: enough never to keep a worker waiting for us. */
const WINDOW = 8;
/** Merging costs as much as there is to merge: not for each order. */
const MERGE_AT = 256;

export class OrderQueue {
  readonly #send: (order: Order) => void;
  #pending: Order[] = [];
  #mergeAt = MERGE_AT;
  #unanswered = 0;

  constructor(send: (order: Order) => void) {
    this.#send = send;
  }

  /** Orders that wait. */
  get length(): number {
    return this.#pending.length;
  }

  post(order: Order): void {
    // Cut-offs name no listener and no endpoint: they need not wait for any table, and must not.
    if (order.kind === 'cutoffs' || (this.#pending.length === 0 && this.#unanswered < WINDOW)) {
      this.#sendNow(order);
      return;
    }
    this.#pending.push(order);
    if (this.#pending.length < this.#mergeAt) return;
    this.#pending = mergeOrders(this.#pending);
    this.#mergeAt = Math.max(MERGE_AT, 2 * this.#pending.length);
  }

  /** The worker has answered a mark. */
  answered(): void {
    this.#unanswered -= 1;
    if (this.#unanswered >= WINDOW) return;
    const due = mergeOrders(this.#pending);
    this.#pending = [];
    for (const order of due) this.#sendNow(order);
  }

  #sendNow(order: Order): void {
    if (order.kind === 'mark') this.#unanswered += 1;
    this.#send(order);
  }
}
