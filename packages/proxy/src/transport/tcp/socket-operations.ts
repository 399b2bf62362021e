// Operations on a socket that differ between plain TCP (here) and terminated TLS (`tls-stream.ts`).
import type { Socket } from 'node:net';
import { CopyBuffer } from './write-buffers.ts';

export interface SocketOperations {
  readonly maxWriteBytes?: number;
  /** Writes bytes. With `mayKeep` they are not in a shared buffer, so the socket need not copy them. */
  write(socket: Socket, bytes: Uint8Array, { mayKeep, onWritten }: { mayKeep: boolean; onWritten: () => void }): void;
  /**
   * Whether the kernel has taken a write, made while none was pending, before the socket reports it. Absent if the
   * socket reports it at once.
   */
  hasTaken?(socket: Socket, length: number): boolean;
  /** Sends RST and releases the descriptor, whatever is pending. */
  reset(socket: Socket): void;
  /** Fails the socket if its peer has reset; sends nothing. */
  probe(socket: Socket): void;
  /** Returns why the end of the input is an error, or undefined if it is a proper end. */
  endFault?(socket: Socket): string | undefined;
}

export const PLAIN_SOCKET_OPERATIONS: SocketOperations = { write: writeCopy, reset: resetPlain, probe: writeNothing };

const SMALL_COPY_BYTES = 4_096;
const LARGE_COPY_BYTES = 65_536;

const largeCopies = new CopyBuffer(LARGE_COPY_BYTES);
// Small copies are separate, so that a slow reader of small messages does not hold a large buffer for each.
const smallCopies = new CopyBuffer(SMALL_COPY_BYTES);
const NOTHING = new Uint8Array(0);

function writeCopy(
  socket: Socket,
  bytes: Uint8Array,
  { mayKeep, onWritten }: { mayKeep: boolean; onWritten: () => void },
): void {
  if (mayKeep) {
    socket.write(bytes, onWritten);
    return;
  }
  const buffer = bytes.length <= SMALL_COPY_BYTES ? smallCopies : largeCopies;
  const copy = bytes.length <= LARGE_COPY_BYTES ? buffer.copy(bytes) : Buffer.from(bytes);
  socket.write(copy, onWritten);
  // `writableLength` counts a write until it completes: at 0 neither libuv nor the socket holds the copy.
  if (socket.writableLength > 0) buffer.keep();
}

function resetPlain(socket: Socket): void {
  if (socket.connecting) socket.destroy();
  // Libuv refuses to reset while a FIN is queued, and the descriptor would leak. The FIN is sent in this iteration.
  else if (isSendingFin(socket)) socket.once('finish', resetNow);
  else socket.resetAndDestroy();
}

function writeNothing(socket: Socket): void {
  socket.write(NOTHING);
}

export function isSendingFin(socket: Socket): boolean {
  return socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
}

function resetNow(this: Socket): void {
  if (!this.destroyed) this.resetAndDestroy();
}
