import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { patternBytes } from './pattern.ts';

export type ByteCountingServer = TestServer & {
  /** Bytes read from all connections so far. */
  readonly received: number;
  /** Bytes written to all connections so far. */
  readonly sent: number;
};

/**
 * Starts a server that echoes what it receives, and half-closes a connection after the client has done so. `sent` does
 * not count the greeting.
 */
export function echoServer(options: ListenOptions & { greeting?: string } = {}): Promise<ByteCountingServer> {
  const { greeting, ...where } = options;
  return byteCountingServer(where, (socket, count) => {
    if (greeting !== undefined) socket.write(greeting);
    socket.on('data', (chunk) => {
      count.received += chunk.length;
      count.sent += chunk.length;
      if (!socket.write(chunk)) socket.pause();
    });
    socket.on('drain', () => socket.resume());
    socket.on('end', () => socket.end());
  });
}

/** Starts a server that reads everything, sends nothing, and half-closes a connection after the client has done so. */
export function discardServer(where: ListenOptions = {}): Promise<ByteCountingServer> {
  return byteCountingServer(where, (socket, count) => {
    socket.on('data', (chunk) => {
      count.received += chunk.length;
    });
    socket.on('end', () => socket.end());
  });
}

/**
 * Starts a server that sends `bytes` bytes of the pattern `seed` on every connection, then half-closes the connection.
 */
export function patternServer(options: ListenOptions & { bytes: number; seed?: number }): Promise<ByteCountingServer> {
  const { bytes, seed = 0, ...where } = options;
  return byteCountingServer(where, (socket, count) => {
    let at = 0;
    const sendMore = (): void => {
      while (at < bytes && !socket.destroyed) {
        const chunk = patternBytes({ seed, offset: at, length: Math.min(65_536, bytes - at) });
        at += chunk.length;
        count.sent += chunk.length;
        if (!socket.write(chunk)) return;
      }
      if (!socket.writableEnded) socket.end();
    };
    socket.on('data', (chunk) => {
      count.received += chunk.length;
    });
    socket.on('drain', sendMore);
    sendMore();
  });
}

export type HttpBackend = TestServer & { readonly requests: number };

/** Starts an HTTP/1.1 server that answers with `name`, unless a `handler` is given. */
export async function httpBackend(
  options: ListenOptions & { name?: string; handler?: RequestListener } = {},
): Promise<HttpBackend> {
  const {
    name = 'backend',
    handler = (_request, response): void => void response.end(`${name}\n`),
    ...where
  } = options;
  let requests = 0;
  const server = createHttpServer((request, response) => {
    requests++;
    handler(request, response);
  });
  return withLiveCounts(await listenTestServer(server, where), { requests: () => requests });
}

type ByteCounts = { received: number; sent: number };

async function byteCountingServer(
  where: ListenOptions,
  serve: (socket: Socket, count: ByteCounts) => void,
): Promise<ByteCountingServer> {
  const count: ByteCounts = { received: 0, sent: 0 };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => serve(socket, count));
  return withLiveCounts(await listenTestServer(server, where), {
    received: () => count.received,
    sent: () => count.sent,
  });
}

/** Adds counters to a server as getters. An object spread would only copy the values that the counters have now. */
function withLiveCounts<K extends string>(
  server: TestServer,
  counts: Record<K, () => number>,
): TestServer & Record<K, number> {
  for (const key in counts) Object.defineProperty(server, key, { get: counts[key], enumerable: true });
  return server as TestServer & Record<K, number>;
}

export type TestServer = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly openConnections: number;
  /** Connections accepted so far. */
  readonly acceptedConnections: number;
  /** Connections that the client has reset so far. */
  readonly resetConnections: number;
  /** Resolves when no connection is open. */
  waitUntilIdle(): Promise<void>;
  /** Stops listening and ends every open connection. */
  close(): Promise<void>;
};

/** Starts to listen (default: 127.0.0.1 and any free port). Tracks the connections, so that `close` can end them. */
export async function listenTestServer(server: Server, where: ListenOptions = {}): Promise<TestServer> {
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let accepted = 0;
  let resets = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    // Errors do not fail the test, because tests reset connections on purpose. Node destroys the socket after an error.
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

/** The ports that `freePort` returns, divided into slots. Each process takes ports of its own slot. */
const FREE_PORTS = { from: 11_000, slots: 190, portsPerSlot: 100 };
/** The number of the next port in the slot of this process. */
let nextInSlot = randomInt(FREE_PORTS.portsPerSlot);

/**
 * Returns a TCP port that is free now, for programs that cannot choose a port themselves. The port is outside of the range from which the
 * kernel takes ports, and the next ports of this process are others. So no connection, no listener with port 0 and hardly ever another
 * test takes the port before the program listens on it.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const { from, slots, portsPerSlot } = FREE_PORTS;
  for (;;) {
    const port = from + (process.pid % slots) * portsPerSlot + nextInSlot;
    nextInSlot = (nextInSlot + 1) % portsPerSlot;
    const server = createServer().listen({ port, host });
    try {
      await once(server, 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
