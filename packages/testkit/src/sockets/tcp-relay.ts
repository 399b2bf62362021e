import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type TcpRelay = AsyncDisposable & {
  readonly port: number;
  /** Resets all connections, and refuses new connections until `restore`. */
  cut(): void;
  restore(): Promise<void>;
};

/** Starts a relay to `target` on loopback: a network path that a test can cut. */
export async function startTcpRelay(target: number): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect({ host: '127.0.0.1', port: target });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => {}); // ignored: `close` follows
      from.once('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port,
    cut,
    async restore() {
      await once(server.listen({ host: '127.0.0.1', port }), 'listening');
    },
    async [Symbol.asyncDispose]() {
      cut();
    },
  };
}
