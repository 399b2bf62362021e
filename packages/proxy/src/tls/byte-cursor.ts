/** Reads the parts of a message one after the other, and never past its end: what is missing is undefined. */
export class ByteCursor {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Uint8Array | undefined {
    if (this.left < length) return undefined;
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Of so many bytes, the highest first. */
  uint(size: 1 | 2): number | undefined {
    const bytes = this.take(size);
    return bytes?.reduce((value, byte) => (value << 8) | byte, 0);
  }

  /** What stands behind a length of so many bytes. */
  vector(lengthSize: 1 | 2): ByteCursor | undefined {
    const length = this.uint(lengthSize);
    const bytes = length === undefined ? undefined : this.take(length);
    return bytes === undefined ? undefined : new ByteCursor(bytes);
  }

  /** What is left, each byte a character. */
  text(): string {
    return String.fromCharCode(...(this.take(this.left) ?? []));
  }
}
