/** What comes first is taken first, whenever it was put in: a binary heap. */
export class PriorityQueue<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #heap: T[];

  /** Costs the number of items; each item that is taken or put in, the logarithm of how many there are. */
  constructor(compare: (a: T, b: T) => number, items: Iterable<T> = []) {
    this.#compare = compare;
    this.#heap = [...items];
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at -= 1) this.#siftDown(at);
  }

  push(item: T): void {
    let at = this.#heap.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(at, above)) return;
      this.#swap(at, above);
      at = above;
    }
  }

  /** Who is taken next. */
  get head(): T | undefined {
    return this.#heap[0];
  }

  /** Undefined: it is empty. */
  pop(): T | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#siftDown(0);
    }
    return first;
  }

  #siftDown(from: number): void {
    let at = from;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let first = at;
      if (left < this.#heap.length && this.#isBefore(left, first)) first = left;
      if (right < this.#heap.length && this.#isBefore(right, first)) first = right;
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #isBefore(a: number, b: number): boolean {
    return this.#compare(this.#heap[a] as T, this.#heap[b] as T) < 0;
  }

  #swap(a: number, b: number): void {
    const item = this.#heap[a] as T;
    this.#heap[a] = this.#heap[b] as T;
    this.#heap[b] = item;
  }
}
