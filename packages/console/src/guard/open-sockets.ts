import type { Socket } from 'node:net';

/**
 * The sockets under TLS. A server ends those that it knows when it closes; one whose handshake is not over it does not know yet,
 * and waits for it.
 */
export class OpenSockets {
  readonly #open = new Set<Socket>();
  #isClosed = false;

  add(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
  }

  /** Ends them, and each that is added afterwards. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
