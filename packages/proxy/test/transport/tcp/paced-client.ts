// A client that reads exactly when the test wants: a paused `net.Socket` would still read one chunk.
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';

const READ_BYTES = 65_536;

export interface PacedClientOptions {
  readonly host: string;
  readonly port: number;
  /** The bytes that the client expects, in this order. */
  readonly expected: Uint8Array;
  /** How many bytes the client reads before each pause of a few turns of the event loop. The list is repeated. */
  readonly readsBetweenPauses: readonly number[];
}

export class PacedClient {
  readonly socket: Socket;
  /** Resolves when the socket is connected. */
  readonly connected: Promise<void>;
  /** Resolves when the peer's FIN has been read. */
  readonly ended: Promise<void>;
  /** Resolves with the code of the error that ended the connection. */
  readonly failed: Promise<string>;
  received = 0;
  readonly #options: PacedClientOptions;
  readonly #reached: { readonly bytes: number; resolve(): void }[] = [];
  #maxReceived = 0;
  #pauses = 0;
  #untilPause: number;
  #mismatch: Error | undefined;

  constructor(options: PacedClientOptions) {
    this.#options = options;
    this.#untilPause = this.#nextStep();
    const { host, port } = options;
    const onread = {
      buffer: Buffer.alloc(READ_BYTES),
      callback: (count: number, bytes: Uint8Array) => this.#take(bytes.subarray(0, count)),
    };
    this.socket = connect({ host, port, allowHalfOpen: true, noDelay: true, onread });
    this.socket.pause();
    this.connected = new Promise((resolve) => this.socket.once('connect', () => resolve()));
    this.ended = new Promise((resolve) => this.socket.once('end', () => resolve()));
    this.failed = new Promise((resolve) =>
      this.socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)),
    );
  }

  /** Reads, with pauses, until at least `bytes` bytes were received in total, and then reads nothing more. */
  async readUntil(bytes: number): Promise<void> {
    this.#maxReceived = bytes;
    if (this.received >= bytes) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reached.push({ bytes, resolve });
    this.socket.resume();
    await promise;
    if (this.#mismatch !== undefined) throw this.#mismatch;
  }

  /** Reads, with pauses, until the peer's FIN. */
  async readToEnd(): Promise<void> {
    this.#maxReceived = Number.POSITIVE_INFINITY;
    this.socket.resume();
    await this.ended;
    if (this.#mismatch !== undefined) throw this.#mismatch;
  }

  /** Checks the bytes. Returns whether to go on reading. */
  #take(bytes: Uint8Array): boolean {
    const { expected } = this.#options;
    const isExpected = Buffer.compare(bytes, expected.subarray(this.received, this.received + bytes.length)) === 0;
    if (!isExpected)
      this.#mismatch ??= new assert.AssertionError({ message: `other bytes than written after byte ${this.received}` });
    this.received += bytes.length;
    for (const waiting of [...this.#reached]) {
      if (this.received < waiting.bytes) continue;
      this.#reached.splice(this.#reached.indexOf(waiting), 1);
      waiting.resolve();
    }
    if (this.received >= this.#maxReceived) return false;
    this.#untilPause -= bytes.length;
    if (this.#untilPause > 0) return true;
    this.#untilPause = this.#nextStep();
    setImmediate(() => setImmediate(() => this.#resume()));
    return false;
  }

  #resume(): void {
    if (!this.socket.destroyed && this.received < this.#maxReceived) this.socket.resume();
  }

  #nextStep(): number {
    const { readsBetweenPauses } = this.#options;
    const step = readsBetweenPauses[this.#pauses % readsBetweenPauses.length] ?? Number.POSITIVE_INFINITY;
    this.#pauses += 1;
    return step;
  }
}
