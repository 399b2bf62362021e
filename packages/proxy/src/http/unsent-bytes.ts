/** Bytes that wait for a connection. They may come byte by byte, so the memory doubles, and each byte is copied few times. */
export class UnsentBytes {
  #memory: Uint8Array | undefined;
  #length = 0;

  get isWaiting(): boolean {
    return this.#memory !== undefined;
  }

  /** Replaces the bytes without a copy; undefined if none wait. */
  set(bytes: Uint8Array | undefined): void {
    this.#memory = bytes;
    this.#length = bytes?.length ?? 0;
  }

  append(bytes: Uint8Array): void {
    const memory = this.#memory;
    if (memory === undefined) {
      this.set(Buffer.from(bytes));
      return;
    }
    const length = this.#length;
    if (memory.length - length < bytes.length) {
      const larger = Buffer.allocUnsafe(length + Math.max(length, bytes.length));
      larger.set(memory.subarray(0, length));
      this.#memory = larger;
    }
    this.#memory?.set(bytes, length);
    this.#length = length + bytes.length;
  }

  /** Removes and returns the bytes; undefined if none wait. */
  take(): Uint8Array | undefined {
    const bytes = this.#memory?.subarray(0, this.#length);
    this.set(undefined);
    return bytes;
  }
}
