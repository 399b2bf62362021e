const MAX_ITEMS_PER_TURN = 200;

/** Does something to many without holding up all others: at once to 200 of them, and to as many in each turn of the event loop. */
export class BatchedAction<T> {
  readonly #act: (item: T) => void;
  readonly #onThrow: (thrown: unknown) => void;
  #items: T[] = [];
  #nextIndex = 0;

  /** `onThrow` hears of one for which `act` threw: the others have theirs all the same. */
  constructor(act: (item: T) => void, onThrow: (thrown: unknown) => void) {
    this.#act = act;
    this.#onThrow = onThrow;
  }

  add(items: Iterable<T>): void {
    const isIdle = this.#items.length === 0;
    for (const item of items) this.#items.push(item);
    if (isIdle) this.#run();
  }

  readonly #run = (): void => {
    const end = Math.min(this.#nextIndex + MAX_ITEMS_PER_TURN, this.#items.length);
    for (; this.#nextIndex < end; this.#nextIndex += 1) this.#actOn(this.#items[this.#nextIndex] as T);
    if (this.#nextIndex < this.#items.length) {
      setImmediate(this.#run);
      return;
    }
    this.#items = [];
    this.#nextIndex = 0;
  };

  #actOn(item: T): void {
    try {
      this.#act(item);
    } catch (thrown) {
      this.#onThrow(thrown);
    }
  }
}
