// The socket operations that differ between plain TCP (in this file) and terminated TLS (in `node-tls-stream.ts`).
import type { Socket } from 'node:net';

export interface SocketOperations {
  readonly maxWriteBytes?: number;
  /**
   * Writes `bytes`. `mayKeep` is true if the bytes are not in a shared buffer, so that the socket can keep them without a copy.
   */
  write(socket: Socket, bytes: Uint8Array, { mayKeep, onWritten }: { mayKeep: boolean; onWritten: () => void }): void;
  /**
   * Whether the kernel has already taken the last write although the socket has not reported it. Called only for a
   * write that was made while no other write was pending. Absent if the socket reports each write at once.
   */
  hasTaken?(socket: Socket, length: number): boolean;
  /** Sends RST and releases the descriptor, even if writes are pending. */
  reset(socket: Socket): void;
  /** Makes the socket fail if the peer has reset the connection. Sends nothing. */
  probe(socket: Socket): void;
  /**
   * Returns an error code if the input ended improperly, for example without TLS close_notify. Otherwise returns
   * undefined.
   */
  endFault?(socket: Socket): string | undefined;
}

export const PLAIN_SOCKET_OPERATIONS: SocketOperations = { write: writeCopy, reset: resetPlain, probe: writeNothing };

const SMALL_COPY_BYTES = 4_096;
const LARGE_COPY_BYTES = 65_536;

/** The maximum length of a cached view, in bytes. Most messages are short and have one of a few lengths. */
const MAX_CACHED_LENGTH = 1_024;

/** A buffer with cached views of its first bytes, one view for each length. */
class PrefixViews {
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
class CopyBuffer {
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

const largeCopies = new CopyBuffer(LARGE_COPY_BYTES);
// Small writes have their own buffer. Otherwise each pending small write to a slow reader would keep a large buffer in
// use.
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
  // If `writableLength` is 0, all writes have completed, and neither libuv nor the socket uses the copy.
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
