/** Collects the segments of a message that arrives in parts. */
export class ByteBuffer {
  readonly #initialBytes: number;
  #storage: Uint8Array = new Uint8Array(0);
  #length = 0;

  /** Creates a buffer that allocates at least `initialBytes` for the first segment. */
  constructor(initialBytes = 0) {
    this.#initialBytes = initialBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** All bytes that were appended so far. The view is valid until the next `append`. */
  get bytes(): Uint8Array {
    return this.#storage.subarray(0, this.#length);
  }

  /** Appends a copy of `bytes`. The capacity doubles when needed, so that many small segments cause few copies. */
  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#storage.length) {
      const larger = new Uint8Array(Math.max(this.#initialBytes, length, this.#storage.length * 2));
      larger.set(this.bytes);
      this.#storage = larger;
    }
    this.#storage.set(bytes, this.#length);
    this.#length = length;
  }
}
