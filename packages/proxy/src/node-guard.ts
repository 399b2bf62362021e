// One serving proxy per fleet and node: an abstract Unix socket is the token. It belongs to the network namespace, like
// the ports that it guards, and the kernel takes it back whatever happens to its holder.
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Clock, Timer } from '@weir/runtime';

const RETRY_MS = 250;
/** Not at once: a holder that lets nobody wait must not be asked without end. */
const RELEASED_MS = 5;

export interface NodeGuardOptions {
  readonly fleet: string;
  readonly node: string;
  readonly clock: Clock;
  /** `undefined`: the token is ours. */
  readonly onChange: (conflict: string | undefined) => void;
}

export class NodeGuard {
  readonly #options: NodeGuardOptions;
  readonly #path: string;
  readonly #waiting = new Set<Socket>();
  #server: Server | undefined;
  #watched: Socket | undefined;
  #retry: Timer | undefined;
  #isReleased = false;

  constructor(options: NodeGuardOptions) {
    this.#options = options;
    this.#path = `\0weir/${options.fleet}/${options.node}`;
  }

  /** Resolves when it is known whether the token is ours; goes on trying when it is not. */
  take(): Promise<void> {
    return new Promise((resolve) => {
      const server = createServer((socket) => this.#letWait(socket));
      server.once('error', (error: NodeJS.ErrnoException) => {
        this.#failed(error);
        resolve();
      });
      server.listen({ path: this.#path }, () => {
        if (this.#isReleased) server.close();
        else this.#server = server;
        this.#options.onChange(undefined);
        resolve();
      });
    });
  }

  /** When a drain begins: the next one may serve while our connections run on. */
  release(): void {
    this.#isReleased = true;
    this.#retry?.cancel();
    this.#watched?.destroy();
    this.#server?.close();
    for (const socket of this.#waiting) socket.destroy();
  }

  /** Whoever waits for the token learns of its release by the end of this connection. */
  #letWait(socket: Socket): void {
    this.#waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#waiting.delete(socket));
    socket.resume();
  }

  #failed(error: NodeJS.ErrnoException): void {
    const { fleet, node, onChange } = this.#options;
    if (this.#isReleased) return;
    if (error.code !== 'EADDRINUSE') {
      onChange(`cannot take the lock of node ${node}: ${error.message}; it is tried again`);
      this.#tryLater();
      return;
    }
    onChange(
      `another proxy serves node ${node} of fleet ${fleet} on this host; stop it, or give this one another WEIR_NODE`,
    );
    this.#watch(connect({ path: this.#path }));
  }

  /** The holder lets us wait on a connection: its end is the release. */
  #watch(holder: Socket): void {
    let isHeld = false;
    this.#watched = holder.resume();
    holder.on('connect', () => {
      isHeld = true;
    });
    holder.on('error', () => undefined);
    holder.on('close', () => this.#tryLater(isHeld ? RELEASED_MS : RETRY_MS));
  }

  #tryLater(ms: number = RETRY_MS): void {
    if (this.#isReleased) return;
    this.#retry?.cancel();
    this.#retry = this.#options.clock.setTimeout(() => void this.take(), ms);
  }
}
