// What Node calls: functions of a module, so that no stream needs closures. Each finds its stream by the handle or request.
import { END_OF_FILE, type HandleRequest, requireRawTcpBinding, type TcpHandle } from './bare-binding.ts';
import { DeferredQueue } from './later.ts';
import { BufferPool } from './spare-buffers.ts';

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
