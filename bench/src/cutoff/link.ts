// The network path between one proxy and Redis: a relay on loopback that the benchmark can cut.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { monotonicMs } from '../measure/monotonic-clock.ts';

export type Link = AsyncDisposable & {
  readonly url: string;
  /** Resets all connections, and refuses new connections until `restore`. */
  cut(): void;
  /** Returns the time on the machine's monotonic clock at which the path works again. */
  restore(): Promise<number>;
};

/** Starts a relay to `port` on loopback. */
export async function startLink(port: number): Promise<Link> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect({ host: '127.0.0.1', port });
    for (const [from, to] of [
      [client, redis],
      [redis, client],
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
  const own = (server.address() as AddressInfo).port;
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: `redis://127.0.0.1:${own}`,
    cut,
    async restore() {
      await once(server.listen({ host: '127.0.0.1', port: own }), 'listening');
      return monotonicMs();
    },
    async [Symbol.asyncDispose]() {
      cut();
    },
  };
}
