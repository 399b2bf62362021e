/** A message is read whole in one turn of the event loop. */
const MOST_IN_ONE = 200;

/**
 * What is said to a thread: the first at once, and what else is said in one go, in one message: of thousands of listeners each message
 * costs more than what it says.
 */
export class Outbox<T> {
  readonly #send: (said: readonly T[]) => void;
  readonly #later: (flush: () => void) => void;
  #said: T[] = [];
  #isDue = false;

  /** `later`: calls it when what is under way now has said all that it has to say. */
  constructor(send: (said: readonly T[]) => void, later: (flush: () => void) => void) {
    this.#send = send;
    this.#later = later;
  }

  say(message: T): void {
    this.#said.push(message);
    if (this.#isDue && this.#said.length < MOST_IN_ONE) return;
    this.flush();
    if (this.#isDue) return;
    this.#isDue = true;
    this.#later(this.#end);
  }

  flush(): void {
    if (this.#said.length === 0) return;
    const said = this.#said;
    this.#said = [];
    this.#send(said);
  }

  readonly #end = (): void => {
    this.#isDue = false;
    this.flush();
  };
}
