/** Up to this length a view is made once: most messages are short, and of few lengths. */
const CACHED = 1_024;

/** Some memory, seen from its beginning. */
export class Views {
  readonly memory: Buffer<ArrayBuffer>;
  readonly #known: (Uint8Array | undefined)[] = [];

  constructor(size: number) {
    this.memory = Buffer.allocUnsafeSlow(size);
  }

  first(length: number): Uint8Array {
    if (length > CACHED) return new Uint8Array(this.memory.buffer, 0, length);
    const known = this.#known[length];
    if (known !== undefined) return known;
    const view = new Uint8Array(this.memory.buffer, 0, length);
    while (this.#known.length < length) this.#known.push(undefined);
    this.#known[length] = view;
    return view;
  }
}
