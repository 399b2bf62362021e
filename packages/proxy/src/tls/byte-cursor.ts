/** Reads the parts of a message one after the other, and never past its end: what is missing is undefined. */
export class ByteCursor {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, at = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  /** Whether there were so many bytes to leave out. */
  skip(length: number): boolean {
    if (this.remaining < length) return false;
    this.#at += length;
    return true;
  }

  /** Of so many bytes, the highest first. */
  uint(size: 1 | 2): number | undefined {
    const at = this.#at;
    if (!this.skip(size)) return undefined;
    const first = this.#bytes[at] as number;
    return size === 1 ? first : (first << 8) | (this.#bytes[at + 1] as number);
  }

  /** What stands behind a length of so many bytes. */
  vector(lengthSize: 1 | 2): ByteCursor | undefined {
    const length = this.uint(lengthSize);
    if (length === undefined || !this.skip(length)) return undefined;
    return new ByteCursor(this.#bytes, this.#at - length, this.#at);
  }

  /** What is left, each byte a character. */
  text(): string {
    const bytes = this.#bytes.subarray(this.#at, this.#end);
    this.#at = this.#end;
    return String.fromCharCode(...bytes);
  }
}
