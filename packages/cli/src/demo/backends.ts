// The applications of the demo's tenants. In a cluster these applications would run in pods.
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { formatHostPort, listenError, UsageError } from '@weir/runtime';
import { addressIn, type DemoNetwork } from './demo-network.ts';

export interface Backends {
  /** Bytes that the upload server has received so far. */
  receivedUploadBytes(): number;
  close(): Promise<void>;
}

interface BackendServer {
  readonly server: Server;
  readonly host: string;
  readonly port: number;
}

/** Starts the applications at the endpoint addresses that the manifests contain. */
export async function startBackends(network: DemoNetwork): Promise<Backends> {
  let receivedUploadBytes = 0;
  const count = (bytes: number): void => {
    receivedUploadBytes += bytes;
  };
  const backendAt = (last: number, port: number, server: Server): BackendServer => ({
    server,
    host: addressIn(network, last),
    port,
  });
  const backendServers = [
    backendAt(41, 18_081, shopServer()),
    backendAt(42, 18_081, shopServer()),
    backendAt(41, 18_082, orderServer()),
    backendAt(43, 17_778, gameServer()),
    backendAt(44, 19_001, uploadServer(count)),
  ];
  const sockets = new Set<Socket>();
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await Promise.all(backendServers.map(({ server }) => server[Symbol.asyncDispose]().catch(() => {})));
  };
  try {
    for (const backendServer of backendServers) {
      backendServer.server.on('connection', (socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
      });
      await listen(backendServer);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { receivedUploadBytes: () => receivedUploadBytes, close };
}

async function listen({ server, host, port }: BackendServer): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    const advice = 'end the other program, which may be another demo, or choose other addresses with --network 127.0.5';
    const { message } = listenError(error, { address: formatHostPort({ host, port }), advice });
    throw new UsageError(`a backend of the demo ${message}`, { cause: error });
  }
}

/** Size of the page that the shop serves. */
export const PAGE_BYTES = 30_000;

function shopServer(): Server {
  const page = Buffer.alloc(PAGE_BYTES, 'fresh fish, today from the weir\n');
  return createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': page.length });
    response.end(page);
  });
}

/** A status that Weir never answers itself. */
export const FAILED_ORDER_STATUS = 500;
const ORDERS_PER_FAILURE = 5;

/** Creates a server that fails for every fifth order, so that the demo has server errors to show. */
function orderServer(): Server {
  let orders = 0;
  return createHttpServer((_request, response) => {
    orders += 1;
    response.writeHead(orders % ORDERS_PER_FAILURE === 0 ? FAILED_ORDER_STATUS : 201);
    response.end();
  });
}

/** Creates a server that echoes every move to the player. */
function gameServer(): Server {
  return createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.pipe(socket);
  });
}

/** Creates a server that reads all data and sends nothing. */
function uploadServer(onBytes: (bytes: number) => void): Server {
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => onBytes(chunk.length));
  });
}
