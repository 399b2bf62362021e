// Serves the methods of `HandshakeFlood` over IPC: opens connections, and sends a ClientHello on all of them at the same moment. The clients
// never continue their handshakes, so an attack costs this process almost nothing. The process has the lowest priority, because real
// attackers have processors of their own.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { duplexPair } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { serveRpc } from '../processes/rpc.ts';

export type HandshakeFlood = {
  /** Opens connections. Resolves when all are open. */
  open(port: number, connections: number): Promise<void>;
  sendClientHellos(serverName: string): Promise<void>;
  /** Counts the ClientHellos that were sent and answered, and the connections that the proxy has closed. */
  report(): { sent: number; answered: number; ended: number };
  close(): void;
};

/** Less than the accept queue of the proxy's listener, so that no connection attempt is refused. */
const MAX_PENDING_CONNECTIONS = 64;

const open = new Set<Socket>();
const count = { sent: 0, answered: 0, ended: 0 };

setPriority(constants.priority.PRIORITY_LOW);
serveRpc<HandshakeFlood>({
  async open(port, connections) {
    Object.assign(count, { sent: 0, answered: 0, ended: 0 });
    let next = 0;
    const openSequentially = async (): Promise<void> => {
      while (next++ < connections) open.add(await openConnection(port));
    };
    await Promise.all(Array.from({ length: MAX_PENDING_CONNECTIONS }, openSequentially));
  },
  async sendClientHellos(serverName) {
    const clientHello = await captureClientHello(serverName);
    for (const socket of open) socket.write(clientHello);
    count.sent = open.size;
  },
  report: () => count,
  close() {
    for (const socket of open) socket.resetAndDestroy();
    open.clear();
  },
});

async function openConnection(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  socket.once('data', () => count.answered++);
  socket.on('error', () => {});
  socket.once('close', () => {
    if (open.delete(socket)) count.ended++;
  });
  return socket;
}

/** Returns the ClientHello that the TLS client of Node sends. */
async function captureClientHello(serverName: string): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connectTls({ socket: near, servername: serverName });
  client.on('error', () => {});
  const [clientHello] = await once(far, 'data');
  client.destroy();
  return clientHello as Buffer;
}
