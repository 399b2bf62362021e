// What a stream does to its socket in another way where TLS ends (`tls-stream.ts`) than on a plain one.
import type { Socket } from 'node:net';
import { CopyBuffer } from './write-buffers.ts';

export interface SocketOperations {
  readonly maxWriteBytes?: number;
  /** `isOurs`: nobody else has the bytes, and the socket may keep them. */
  write(socket: Socket, bytes: Uint8Array, { isOurs, onWritten }: { isOurs: boolean; onWritten: () => void }): void;
  /** Whether the kernel has all of a write, before which none waited, though the socket does not say so yet; absent: it says it at once. */
  hasTaken?(socket: Socket, length: number): boolean;
  /** RST, and the descriptor is released, whatever is under way. */
  reset(socket: Socket): void;
  /** Makes the socket fail if its peer has reset; sends nothing. */
  probe(socket: Socket): void;
  /** Why the end of what it reads is a failure; undefined: it is the peer's end. */
  endFault?(socket: Socket): string | undefined;
}

export const PLAIN_SOCKET_OPERATIONS: SocketOperations = { write: writeCopy, reset: resetPlain, probe: writeNothing };

const SMALL_COPY_BYTES = 4_096;
const LARGE_COPY_BYTES = 65_536;

const largeCopies = new CopyBuffer(LARGE_COPY_BYTES);
// So that a slow reader of small messages does not pin a large room for each.
const smallCopies = new CopyBuffer(SMALL_COPY_BYTES);
const NOTHING = new Uint8Array(0);

function writeCopy(
  socket: Socket,
  bytes: Uint8Array,
  { isOurs, onWritten }: { isOurs: boolean; onWritten: () => void },
): void {
  if (isOurs) {
    socket.write(bytes, onWritten);
    return;
  }
  const space = bytes.length <= SMALL_COPY_BYTES ? smallCopies : largeCopies;
  const copy = bytes.length <= LARGE_COPY_BYTES ? space.copy(bytes) : Buffer.from(bytes);
  socket.write(copy, onWritten);
  // `writableLength` counts a write until it is over: 0 says that neither libuv nor the socket holds the copy.
  if (socket.writableLength > 0) space.keep();
}

function resetPlain(socket: Socket): void {
  if (socket.connecting) socket.destroy();
  // libuv refuses to reset while a FIN waits for its turn, and the descriptor would leak; it is sent within this turn.
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
