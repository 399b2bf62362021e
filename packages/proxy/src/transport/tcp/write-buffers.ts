/** Smaller ones are not worth keeping. */
const MIN_BUFFER_BYTES = 8_192;
/** What nobody has needed for so long is given back to the system. */
const IDLE_TIMEOUT_MS = 5_000;

/**
 * Memory for what the kernel did not take at once, used again and again: made anew each time it would weigh on the garbage
 * collector, which counts its bytes, as much as relaying does. Sizes are powers of two.
 */
export class BufferPool {
  readonly #maxFreeBytes: number;
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  /** So that nothing is ever lent to two. */
  readonly #lent = new Set<ArrayBufferLike>();
  #lentBytes = 0;
  #isNeeded = false;
  #timer: NodeJS.Timeout | undefined;

  /** Of what is given back at most so many bytes are kept. */
  constructor(most: number) {
    this.#maxFreeBytes = most;
  }

  /** In use, with what is left over at the end of each. */
  get lentBytes(): number {
    return this.#lentBytes;
  }

  /** A copy of `bytes` that is nobody else's until it is given back. */
  copy(bytes: Uint8Array): Uint8Array {
    const memory = this.#take(sizeFor(bytes.length));
    this.#lent.add(memory);
    this.#lentBytes += memory.byteLength;
    this.#isNeeded = true;
    const copy = new Uint8Array(memory, 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Nobody looks at it any more. Nothing happens when it was not lent from here, or came back already. */
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

/**
 * Room for the copies that writes work on. A write that the kernel takes at once leaves its copy free for the next one;
 * one that must wait keeps it for good, and a new room is made. So almost nothing is allocated while peers keep up, and
 * no waiting write ever shares its bytes with anybody.
 */
export class CopyBuffer {
  readonly #size: number;
  #memory: PrefixViews;

  constructor(size: number) {
    this.#size = size;
    this.#memory = new PrefixViews(size);
  }

  /** At most `size` bytes. The copy is good until the next `copy`, unless `keep` is called before that. */
  copy(bytes: Uint8Array): Uint8Array {
    const copy = this.#memory.first(bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** The last copy is still in use. */
  keep(): void {
    this.#memory = new PrefixViews(this.#size);
  }
}
