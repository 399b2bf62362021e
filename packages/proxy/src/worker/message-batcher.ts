/** A message is read whole in one turn of the event loop. */
const MAX_MESSAGES_PER_BATCH = 200;

/**
 * What is said to a thread: the first at once, and what else is said in one go, in one message: of thousands of listeners each message
 * costs more than what it says.
 */
export class MessageBatcher<T> {
  readonly #send: (said: readonly T[]) => void;
  readonly #schedule: (flush: () => void) => void;
  #pending: T[] = [];
  #isScheduled = false;

  /** `later`: calls it when what is under way now has said all that it has to say. */
  constructor(send: (said: readonly T[]) => void, later: (flush: () => void) => void) {
    this.#send = send;
    this.#schedule = later;
  }

  add(message: T): void {
    this.#pending.push(message);
    if (this.#isScheduled && this.#pending.length < MAX_MESSAGES_PER_BATCH) return;
    this.flush();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#schedule(this.#onScheduled);
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const said = this.#pending;
    this.#pending = [];
    this.#send(said);
  }

  readonly #onScheduled = (): void => {
    this.#isScheduled = false;
    this.flush();
  };
}
