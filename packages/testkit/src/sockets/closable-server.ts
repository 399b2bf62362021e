import { once } from 'node:events';
import type { AddressInfo, ListenOptions, Server, Socket } from 'node:net';

export type TestServer = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly openConnections: number;
  /** Connections accepted so far. */
  readonly acceptedConnections: number;
  /** Connections that the client has reset. */
  readonly resetConnections: number;
  /** Resolves when no connection is open. */
  waitUntilIdle(): Promise<void>;
  /** Stops listening and ends every open connection. */
  close(): Promise<void>;
};

/** Listens (default: 127.0.0.1, any free port) and remembers the connections, so that `close` ends at once. */
export async function listenTestServer(server: Server, where: ListenOptions = {}): Promise<TestServer> {
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let accepted = 0;
  let resets = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    // node destroys the socket by itself; resets are part of what the tests do
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') resets++;
    });
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting.clear();
    });
  });
  server.listen({ host: '127.0.0.1', port: 0, ...where });
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    host: address,
    port,
    get openConnections() {
      return sockets.size;
    },
    get acceptedConnections() {
      return accepted;
    },
    get resetConnections() {
      return resets;
    },
    waitUntilIdle: () => (sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.add(resolve))),
    close,
    [Symbol.asyncDispose]: close,
  };
}
