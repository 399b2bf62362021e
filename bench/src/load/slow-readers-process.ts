// Serves the methods of `SlowReaders` over IPC: downloads an endless stream on each connection, and reads only the first bytes.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { serveRpc } from '../processes/rpc.ts';
import { BUFFER_BYTES, ENDLESS_REQUEST } from './bulk-stream.ts';

export type SlowReaders = {
  /** Opens connections. Resolves when all connections have stopped reading. */
  open(port: number, connections: number, bytesToRead: number): Promise<void>;
  /** Returns how many connections are open. */
  count(): number;
  close(): void;
};

/** Less than the accept queue of the proxy's listener, so that no connection attempt is refused. */
const MAX_PENDING_CONNECTIONS = 32;
/** Each address has its own range of ephemeral ports. */
const SOURCE_ADDRESSES = 4;

const open = new Set<Socket>();
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);

serveRpc<SlowReaders>({
  async open(port, connections, bytesToRead) {
    let next = 0;
    const openSequentially = async (): Promise<void> => {
      while (next < connections) await openSlowReader(port, bytesToRead, `127.0.0.${2 + (next++ % SOURCE_ADDRESSES)}`);
    };
    await Promise.all(Array.from({ length: MAX_PENDING_CONNECTIONS }, openSequentially));
  },
  count: () => open.size,
  close() {
    for (const socket of open) socket.resetAndDestroy();
    open.clear();
  },
});

/** Resolves when the connection has read enough, or has ended. */
async function openSlowReader(port: number, bytesToRead: number, localAddress: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = bytesToRead;
  const onread = {
    buffer: shared,
    callback: (count: number): boolean => {
      left -= count;
      if (left <= 0) resolve();
      return left > 0;
    },
  };
  const socket = connect({ host: '127.0.0.1', port, localAddress, onread });
  socket.on('error', () => {});
  socket.once('close', () => {
    open.delete(socket);
    resolve();
  });
  await once(socket, 'connect').catch(() => {});
  if (socket.destroyed) return;
  open.add(socket);
  socket.write(ENDLESS_REQUEST);
  await promise;
}
