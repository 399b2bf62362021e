import { END_OF_FILE, type HandleRequest, requireRawTcpBinding, type TcpHandle } from './raw-tcp-binding.ts';
import { BufferPool } from './write-buffers.ts';

// The callbacks of handles and requests. They are module-level functions that find the stream through the `owner` of
// the handle or request. So a stream needs no closures.

/** The stream that owns a handle and its requests. A `status` below 0 is a libuv error. */
export interface HandleOwner {
  connected(status: number): void;
  /**
   * Handles `count` bytes that were read. Returns a buffer that replaces the current read buffer, or undefined to keep
   * the current buffer.
   */
  take(count: number): Uint8Array | undefined;
  /** Called when the peer's FIN was read, after all data. */
  end(): void;
  written(status: number): void;
  /** Called when the request to send the FIN has completed. */
  finished(status: number): void;
  fail(error: number): void;
  emitClose(): void;
}

/**
 * Calls `handle` for each added item when the current callback from Node has finished, or by `setImmediate` if no
 * callback is running. So `handle` never runs inside the call that adds the item.
 */
export class DeferredQueue<T> {
  readonly #handle: (item: T) => void;
  #items: T[] = [];
  #isInside = false;

  constructor(handle: (item: T) => void) {
    this.#handle = handle;
  }

  /** Marks the start of a callback from Node. `leave` must be called at the end of the callback. */
  enter(): void {
    this.#isInside = true;
  }

  leave(): void {
    this.#isInside = false;
    if (this.#items.length > 0) this.#flush();
  }

  add(item: T): void {
    if (this.#items.length === 0 && !this.#isInside) setImmediate(this.#flush);
    this.#items.push(item);
  }

  readonly #flush = (): void => {
    const items = this.#items;
    this.#items = [];
    for (const item of items) this.#handle(item);
  };
}

const MAX_SPARE_BYTES = 4_194_304;
const { state, READ_RESULT } = requireRawTcpBinding();
/** Closed streams whose `onClose` has not been called yet. */
export const closingStreams: DeferredQueue<HandleOwner> = new DeferredQueue((stream) => stream.emitClose());
/**
 * Buffers for the part of a large write that the kernel does not take at once. Libuv uses the buffer until the write
 * completes.
 */
export const pendingWrites: BufferPool = new BufferPool(MAX_SPARE_BYTES);

export function onRead(this: TcpHandle): Uint8Array | undefined {
  const result = state[READ_RESULT] as number;
  // A result of 0 means EAGAIN, not the end of the stream.
  if (result === 0) return undefined;
  closingStreams.enter();
  const stream = this.owner as HandleOwner;
  let next: Uint8Array | undefined;
  if (result > 0) next = stream.take(result);
  else if (result === END_OF_FILE) stream.end();
  else stream.fail(result);
  closingStreams.leave();
  return next;
}

export function onConnected(this: HandleRequest, status: number): void {
  closingStreams.enter();
  (this.owner as HandleOwner).connected(status);
  closingStreams.leave();
}

export function onWritten(this: HandleRequest, status: number): void {
  closingStreams.enter();
  if (this.bytes !== undefined) pendingWrites.giveBack(this.bytes);
  (this.owner as HandleOwner).written(status);
  closingStreams.leave();
}

export function onFinished(this: HandleRequest, status: number): void {
  closingStreams.enter();
  (this.owner as HandleOwner).finished(status);
  closingStreams.leave();
}
