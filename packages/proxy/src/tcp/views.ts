/** Views of the first bytes of one memory. Short ones are made once: most messages are short, and of few lengths. */
export class Views {
  readonly #memory: ArrayBuffer;
  readonly #short: (Uint8Array | undefined)[];

  constructor(memory: ArrayBuffer, cachedUpTo: number) {
    this.#memory = memory;
    this.#short = new Array(cachedUpTo + 1).fill(undefined);
  }

  first(length: number): Uint8Array {
    if (length >= this.#short.length) return new Uint8Array(this.#memory, 0, length);
    const known = this.#short[length];
    if (known !== undefined) return known;
    const view = new Uint8Array(this.#memory, 0, length);
    this.#short[length] = view;
    return view;
  }
}
