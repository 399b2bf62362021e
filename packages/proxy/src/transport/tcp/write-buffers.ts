/** The size of the smallest buffers in the pool. */
const MIN_BUFFER_BYTES = 8_192;
/** How long the pool must be unused, at least, before it releases its free buffers. */
const IDLE_TIMEOUT_MS = 5_000;

/**
 * A pool of buffers for written bytes that the kernel did not take at once. Without the pool, the garbage collection of
 * these buffers would cost as much as the relaying itself. Buffer sizes are powers of two.
 */
export class BufferPool {
  readonly #maxFreeBytes: number;
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  /**
   * The buffers in use. `giveBack` checks this set, because a buffer that is returned twice would be lent to two
   * writes.
   */
  readonly #lent = new Set<ArrayBufferLike>();
  #lentBytes = 0;
  #isNeeded = false;
  #timer: NodeJS.Timeout | undefined;

  /** Creates a pool that keeps at most `maxFreeBytes` of returned buffers. */
  constructor(maxFreeBytes: number) {
    this.#maxFreeBytes = maxFreeBytes;
  }

  /** The total size of the buffers in use, in bytes. */
  get lentBytes(): number {
    return this.#lentBytes;
  }

  /** Returns a copy of `bytes` in a buffer that nothing else uses until `giveBack`. */
  copy(bytes: Uint8Array): Uint8Array {
    const memory = this.#take(sizeFor(bytes.length));
    this.#lent.add(memory);
    this.#lentBytes += memory.byteLength;
    this.#isNeeded = true;
    const copy = new Uint8Array(memory, 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Returns a buffer to the pool. Does nothing if the buffer is not from this pool or was already returned. */
  giveBack({ buffer }: Uint8Array): void {
    if (!(buffer instanceof ArrayBuffer) || !this.#lent.delete(buffer)) return;
    this.#lentBytes -= buffer.byteLength;
    if (this.#freeBytes + buffer.byteLength > this.#maxFreeBytes) return;
    this.#freeBytes += buffer.byteLength;
    const alike = this.#free.get(buffer.byteLength);
    if (alike === undefined) this.#free.set(buffer.byteLength, [buffer]);
    else alike.push(buffer);
    this.#timer ??= setInterval(this.#releaseIdle, IDLE_TIMEOUT_MS).unref();
  }

  readonly #releaseIdle = (): void => {
    if (!this.#isNeeded) {
      this.#free.clear();
      this.#freeBytes = 0;
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#isNeeded = false;
  };

  #take(size: number): ArrayBuffer {
    const known = this.#free.get(size)?.pop();
    if (known === undefined) return Buffer.allocUnsafeSlow(size).buffer;
    this.#freeBytes -= size;
    return known;
  }
}

function sizeFor(length: number): number {
  return Math.max(MIN_BUFFER_BYTES, 2 ** Math.ceil(Math.log2(length)));
}

/** The maximum length of a cached view, in bytes. Most messages are short and have one of a few lengths. */
const MAX_CACHED_LENGTH = 1_024;

/** A buffer with cached views of its first bytes, one view for each length. */
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

/**
 * A buffer for copies of written bytes. If the kernel takes a write at once, the next write reuses the buffer. A
 * pending write keeps the buffer, and `keep` allocates a new buffer for later writes. So almost nothing is allocated
 * while peers keep up, and no later write overwrites the bytes of a pending write.
 */
export class CopyBuffer {
  readonly #size: number;
  #memory: PrefixViews;

  constructor(size: number) {
    this.#size = size;
    this.#memory = new PrefixViews(size);
  }

  /**
   * Returns a copy of `bytes`, which must not exceed `size`. The copy is valid until the next call of `copy`, or
   * permanently if `keep` is called first.
   */
  copy(bytes: Uint8Array): Uint8Array {
    const copy = this.#memory.first(bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Makes the last copy permanently valid. */
  keep(): void {
    this.#memory = new PrefixViews(this.#size);
  }
}
