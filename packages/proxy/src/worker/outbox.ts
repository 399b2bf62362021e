/** A message is read whole in one turn of the event loop. */
const MOST_IN_ONE = 200;

/** What is said to a thread in one go, in one message: of thousands of listeners each message costs more than what it says. */
export class Outbox<T> {
  readonly #send: (said: readonly T[]) => void;
  readonly #later: (flush: () => void) => void;
  #said: T[] = [];

  /** `later`: calls it when what is under way now has said all that it has to say. */
  constructor(send: (said: readonly T[]) => void, later: (flush: () => void) => void) {
    this.#send = send;
    this.#later = later;
  }

  say(message: T): void {
    const count = this.#said.push(message);
    if (count === 1) this.#later(this.flush);
    if (count >= MOST_IN_ONE) this.flush();
  }

  readonly flush = (): void => {
    if (this.#said.length === 0) return;
    const said = this.#said;
    this.#said = [];
    this.#send(said);
  };
}
