/** Up to this length a view is made once: most messages are short, and of few lengths. */
const MAX_CACHED_LENGTH = 1_024;

/** Some memory, seen from its beginning. */
export class PrefixViews {
  readonly memory: Buffer<ArrayBuffer>;
  readonly #views: (Uint8Array | undefined)[] = [];

  constructor(size: number) {
    this.memory = Buffer.allocUnsafeSlow(size);
  }

  first(length: number): Uint8Array {
    if (length > MAX_CACHED_LENGTH) return new Uint8Array(this.memory.buffer, 0, length);
    const known = this.#views[length];
    if (known !== undefined) return known;
    const view = new Uint8Array(this.memory.buffer, 0, length);
    while (this.#views.length < length) this.#views.push(undefined);
    this.#views[length] = view;
    return view;
  }
}
