import { connect, type Socket } from 'node:net';
import { roundRobin, type Traffic, type TrafficTarget, untilClosed } from './traffic.ts';

const PARALLEL_UPLOADS = 4;
/** 4 × 16 KiB every 10 ms: some 50 Mbit/s, far more than the other tenants together, and no strain on the machine. */
const CHUNK = Buffer.alloc(16_384, 'more ');
const CHUNK_INTERVAL_MS = 10;
const UPLOAD_RETRY_DELAY_MS = 100;

export interface UploadTraffic extends Traffic {
  /** Connections open now. */
  openConnections(): number;
  /** Resolves when all that are open now have ended, whoever ended them. */
  allClosed(): Promise<void>;
  /** Attempts that were refused so far. */
  refusedConnections(): number;
}

/** Somebody who uploads in a loop and, thrown out, comes back at once. Being cut off is no failure of the demo here. */
export function startUploadTraffic({ addresses, port }: TrafficTarget): UploadTraffic {
  const address = roundRobin(addresses);
  const open = new Set<Socket>();
  const retries = new Set<NodeJS.Timeout>();
  let isStopping = false;
  let sentBefore = 0;
  let connections = 0;
  let refused = 0;

  const upload = (): void => {
    const socket = connect({ host: address(), port, noDelay: true });
    socket.on('connect', () => {
      open.add(socket);
      connections += 1;
    });
    socket.on('error', () => {
      if (!open.has(socket)) refused += 1;
    });
    socket.on('close', () => {
      sentBefore += socket.bytesWritten;
      open.delete(socket);
      if (isStopping) return;
      const retry = setTimeout(() => {
        retries.delete(retry);
        upload();
      }, UPLOAD_RETRY_DELAY_MS);
      retries.add(retry);
    });
    socket.resume();
  };
  for (let index = 0; index < PARALLEL_UPLOADS; index += 1) upload();
  const timer = setInterval(() => {
    for (const socket of open) if (!socket.writableNeedDrain && socket.writable) socket.write(CHUNK);
  }, CHUNK_INTERVAL_MS);

  return {
    count: () => ({
      sentBytes: [...open].reduce((sum, socket) => sum + socket.bytesWritten, sentBefore),
      receivedBytes: 0,
      connections,
      failures: [],
    }),
    openConnections: () => open.size,
    refusedConnections: () => refused,
    async allClosed() {
      await Promise.all([...open].map(untilClosed));
    },
    async stop() {
      isStopping = true;
      clearInterval(timer);
      for (const retry of retries) clearTimeout(retry);
      const ends = [...open].map(untilClosed);
      for (const socket of open) socket.end();
      await Promise.all(ends);
    },
  };
}
