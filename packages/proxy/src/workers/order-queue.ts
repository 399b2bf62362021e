// Orders on their way to one worker. While it keeps up they are sent as they come; while it lags they wait here and are
// merged, so that a table that changes faster than a worker can follow costs neither memory nor ever more delay.
import type { WorkerCommand } from '../worker/messages.ts';
import { mergeCommands } from './merge-orders.ts';

/** So many marks may be on their way: enough never to keep a worker waiting for us. */
const MAX_UNANSWERED_MARKS = 8;
/** Merging costs as much as there is to merge: not for each order. */
const MIN_COMMANDS_TO_MERGE = 256;

export class CommandQueue {
  readonly #send: (order: WorkerCommand) => void;
  #pending: WorkerCommand[] = [];
  #mergeAt = MIN_COMMANDS_TO_MERGE;
  #unansweredMarks = 0;

  constructor(send: (order: WorkerCommand) => void) {
    this.#send = send;
  }

  /** Orders that wait. */
  get length(): number {
    return this.#pending.length;
  }

  post(order: WorkerCommand): void {
    // Cut-offs name no listener and no endpoint: they need not wait for any table, and must not.
    if (order.kind === 'cutoffs' || (this.#pending.length === 0 && this.#unansweredMarks < MAX_UNANSWERED_MARKS)) {
      this.#sendNow(order);
      return;
    }
    this.#pending.push(order);
    if (this.#pending.length < this.#mergeAt) return;
    this.#pending = mergeCommands(this.#pending);
    this.#mergeAt = Math.max(MIN_COMMANDS_TO_MERGE, 2 * this.#pending.length);
  }

  /** The worker has answered a mark. */
  onMarkAnswered(): void {
    this.#unansweredMarks -= 1;
    if (this.#unansweredMarks >= MAX_UNANSWERED_MARKS) return;
    const due = mergeCommands(this.#pending);
    this.#pending = [];
    for (const order of due) this.#sendNow(order);
  }

  #sendNow(order: WorkerCommand): void {
    if (order.kind === 'mark') this.#unansweredMarks += 1;
    this.#send(order);
  }
}
