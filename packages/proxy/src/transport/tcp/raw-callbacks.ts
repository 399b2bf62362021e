import { END_OF_FILE, type HandleRequest, requireRawTcpBinding, type TcpHandle } from './raw-tcp-binding.ts';
import { BufferPool } from './write-buffers.ts';

// What Node calls: functions of a module, so that no stream needs closures. Each finds its stream by the handle or request.

/** Of a handle and of the requests that are made of it: a stream. A `status` below 0 is an error as libuv numbers them. */
export interface HandleOwner {
  connected(status: number): void;
  /** So much has been read. Returns where the next read goes, if elsewhere. */
  take(count: number): Uint8Array | undefined;
  /** All that the peer sent has been told. */
  end(): void;
  written(status: number): void;
  /** Its FIN. */
  finished(status: number): void;
  fail(error: number): void;
  emitClose(): void;
}

/** What must not be told in the middle of somebody's call: told when the callback from Node that we are in is over. */
export class DeferredQueue<T> {
  readonly #handle: (item: T) => void;
  #items: T[] = [];
  #isInside = false;

  constructor(tell: (item: T) => void) {
    this.#handle = tell;
  }

  /** A callback from Node begins; `leave` must follow. */
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
/** Streams that are over, to be told when the callback that we are in is. */
export const closingStreams: DeferredQueue<HandleOwner> = new DeferredQueue((stream) => stream.emitClose());
/** What the kernel did not take of large writes: libuv has it until its write is over. */
export const pendingWrites: BufferPool = new BufferPool(MAX_SPARE_BYTES);

export function onRead(this: TcpHandle): Uint8Array | undefined {
  const result = state[READ_RESULT] as number;
  // 0 is EAGAIN, not the end.
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

/** For `connect`, whose request belongs to a stream, too. */
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
