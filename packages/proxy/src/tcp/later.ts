/** What must not be told in the middle of somebody's call: told when the callback from Node that we are in is over. */
export class DeferredQueue<T> {
  readonly #handle: (item: T) => void;
  #items: T[] = [];
  #isInside = false;

  constructor(tell: (item: T) => void) {
    this.#handle = tell;
  }

  /** A callback from Node begins; `leave` must follow. */
  enter(): void {
    this.#isInside = true;
  }

  leave(): void {
    this.#isInside = false;
    if (this.#items.length > 0) this.#flush();
  }

  add(item: T): void {
    if (this.#items.length === 0 && !this.#isInside) setImmediate(this.#flush);
    this.#items.push(item);
  }

  readonly #flush = (): void => {
    const items = this.#items;
    this.#items = [];
    for (const item of items) this.#handle(item);
  };
}
