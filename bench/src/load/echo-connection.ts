import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const MESSAGE_BYTES = 64;
/** Maximum number of messages without an echo on one connection. If another message is due, the proxy counts as overloaded. */
const MAX_PENDING_MESSAGES = 512;

/** A connection to an echo backend for many messages. Keeps sent messages in a ring buffer and compares every echoed byte with them. */
export class EchoConnection {
  readonly #socket: Socket;
  readonly #onEcho: (dueAt: number) => void;
  readonly #sentMessages = Buffer.alloc(MAX_PENDING_MESSAGES * MESSAGE_BYTES);
  readonly #dueTimes = new Float64Array(MAX_PENDING_MESSAGES);
  readonly #index: number;
  #sentMessageCount = 0;
  #receivedBytes = 0;

  static async open(options: {
    port: number;
    index: number;
    onEcho: (dueAt: number) => void;
  }): Promise<EchoConnection> {
    const connection = new EchoConnection(options);
    await once(connection.#socket, 'connect');
    return connection;
  }

  private constructor({ port, index, onEcho }: { port: number; index: number; onEcho: (dueAt: number) => void }) {
    this.#index = index;
    this.#onEcho = onEcho;
    const shared = Buffer.allocUnsafeSlow(64 * 1024);
    const onread = { buffer: shared, callback: (count: number) => this.#receive(shared, count) };
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread });
  }

  get bytesReceived(): number {
    return this.#receivedBytes;
  }

  get pendingMessages(): number {
    return this.#sentMessageCount - Math.floor(this.#receivedBytes / MESSAGE_BYTES);
  }

  /** Ends the connection. Resolves when both sides have closed it. */
  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.end();
    await closed;
  }

  /** Sends a message, or returns false if too many messages are pending. `dueAt` is passed to `onEcho` when the message returns. */
  send(dueAt: number): boolean {
    if (this.pendingMessages >= MAX_PENDING_MESSAGES) return false;
    const slot = this.#sentMessageCount % MAX_PENDING_MESSAGES;
    const message = this.#sentMessages.subarray(slot * MESSAGE_BYTES, (slot + 1) * MESSAGE_BYTES);
    message.fill(this.#sentMessageCount & 0xff);
    message.writeUInt32LE(this.#index, 0);
    message.writeUInt32LE(this.#sentMessageCount, 4);
    this.#dueTimes[slot] = dueAt;
    this.#sentMessageCount++;
    this.#socket.write(message);
    return true;
  }

  #receive(bytes: Buffer, count: number): boolean {
    for (let at = 0; at < count; ) {
      const slot = Math.floor(this.#receivedBytes / MESSAGE_BYTES) % MAX_PENDING_MESSAGES;
      const within = this.#receivedBytes % MESSAGE_BYTES;
      const length = Math.min(MESSAGE_BYTES - within, count - at);
      const from = slot * MESSAGE_BYTES + within;
      if (this.pendingMessages <= 0 || this.#sentMessages.compare(bytes, at, at + length, from, from + length) !== 0) {
        this.#socket.destroy(
          new Error(`byte ${this.#receivedBytes} of connection ${this.#index} differs from the sent byte`),
        );
        return false;
      }
      at += length;
      this.#receivedBytes += length;
      if (within + length === MESSAGE_BYTES) this.#onEcho(this.#dueTimes[slot] ?? 0);
    }
    return true;
  }
}
