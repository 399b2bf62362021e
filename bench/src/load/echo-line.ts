import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const messageBytes = 64;
/** So many may be under way on one connection; what is behind further than that is overloaded. */
const ringSize = 512;

/**
 * One kept connection to an echo. Each message is numbered, and each byte that comes back is compared with what was sent, which is
 * still in the ring.
 */
export class EchoLine {
  readonly #socket: Socket;
  readonly #onEcho: (dueAt: number) => void;
  readonly #ring = Buffer.alloc(ringSize * messageBytes);
  readonly #due = new Float64Array(ringSize);
  readonly #line: number;
  #sent = 0;
  #receivedBytes = 0;

  static async open(options: { port: number; line: number; onEcho: (dueAt: number) => void }): Promise<EchoLine> {
    const line = new EchoLine(options);
    await once(line.#socket, 'connect');
    return line;
  }

  private constructor({ port, line, onEcho }: { port: number; line: number; onEcho: (dueAt: number) => void }) {
    this.#line = line;
    this.#onEcho = onEcho;
    const shared = Buffer.allocUnsafeSlow(64 * 1024);
    const onread = { buffer: shared, callback: (count: number) => this.#take(shared, count) };
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread });
  }

  get underWay(): number {
    return this.#sent - Math.floor(this.#receivedBytes / messageBytes);
  }

  /** Resolves when the other side has closed too. */
  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.end();
    await closed;
  }

  /** False when too many are under way. `dueAt` is what the latency will be measured from. */
  send(dueAt: number): boolean {
    if (this.underWay >= ringSize) return false;
    const slot = this.#sent % ringSize;
    const message = this.#ring.subarray(slot * messageBytes, (slot + 1) * messageBytes);
    message.fill(this.#sent & 0xff);
    message.writeUInt32LE(this.#line, 0);
    message.writeUInt32LE(this.#sent, 4);
    this.#due[slot] = dueAt;
    this.#sent++;
    this.#socket.write(message);
    return true;
  }

  #take(bytes: Buffer, count: number): boolean {
    for (let at = 0; at < count; ) {
      const slot = Math.floor(this.#receivedBytes / messageBytes) % ringSize;
      const within = this.#receivedBytes % messageBytes;
      const length = Math.min(messageBytes - within, count - at);
      const from = slot * messageBytes + within;
      if (this.underWay <= 0 || this.#ring.compare(bytes, at, at + length, from, from + length) !== 0) {
        this.#socket.destroy(new Error(`byte ${this.#receivedBytes} of connection ${this.#line} is not as sent`));
        return false;
      }
      at += length;
      this.#receivedBytes += length;
      if (within + length === messageBytes) this.#onEcho(this.#due[slot] ?? 0);
    }
    return true;
  }
}
