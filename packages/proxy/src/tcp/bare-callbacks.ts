// What Node calls: functions of a module, so that no stream needs closures. Each finds its stream by the handle or request.
import { END_OF_FILE, type Request, requireBareBinding, type TcpHandle } from './bare-binding.ts';
import { Later } from './later.ts';
import { SpareBuffers } from './spare-buffers.ts';

/** Of a handle and of the requests that are made of it: a stream. A `status` below 0 is an error as libuv numbers them. */
export interface Owner {
  connected(status: number): void;
  /** So much has been read. Returns where the next read goes, if elsewhere. */
  take(count: number): Uint8Array | undefined;
  /** All that the peer sent has been told. */
  end(): void;
  written(status: number): void;
  /** Its FIN. */
  finished(status: number): void;
  fail(error: number): void;
  tellClose(): void;
}

const MOST_SPARE = 4_194_304;

const { state, READ_RESULT } = requireBareBinding();

/** Streams that are over, to be told when the callback that we are in is. */
export const ending: Later<Owner> = new Later((stream) => stream.tellClose());
/** What the kernel did not take of large writes: libuv has it until its write is over. */
export const rests: SpareBuffers = new SpareBuffers(MOST_SPARE);

export function onRead(this: TcpHandle): Uint8Array | undefined {
  const result = state[READ_RESULT] as number;
  // 0 is EAGAIN, not the end.
  if (result === 0) return undefined;
  ending.enter();
  const stream = this.owner as Owner;
  let next: Uint8Array | undefined;
  if (result > 0) next = stream.take(result);
  else if (result === END_OF_FILE) stream.end();
  else stream.fail(result);
  ending.leave();
  return next;
}

/** For `connect`, whose request belongs to a stream, too. */
export function onConnected(this: Request, status: number): void {
  ending.enter();
  (this.owner as Owner).connected(status);
  ending.leave();
}

export function onWritten(this: Request, status: number): void {
  ending.enter();
  if (this.bytes !== undefined) rests.giveBack(this.bytes);
  (this.owner as Owner).written(status);
  ending.leave();
}

export function onFinished(this: Request, status: number): void {
  ending.enter();
  (this.owner as Owner).finished(status);
  ending.leave();
}
