/** So many at a time of one key; the others wait their turn. One user's thousand questions do not keep another's waiting. */
export class KeyedSemaphore {
  readonly #maxPerKey: number;
  readonly #slotsByKey = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(most: number) {
    this.#maxPerKey = most;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const own = this.#slotsByKey.get(key) ?? { running: 0, waiting: [] };
    this.#slotsByKey.set(key, own);
    if (own.running < this.#maxPerKey) own.running += 1;
    // Whoever ends hands its place on.
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = own.waiting.shift();
      if (next !== undefined) next();
      else {
        own.running -= 1;
        if (own.running === 0) this.#slotsByKey.delete(key);
      }
    }
  }
}
