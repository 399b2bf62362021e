// A process of its own: whoever connects at 127.0.0.1 and sends a number of milliseconds and a line end gets the pattern of
// `bulk-pattern.ts` for that long, as fast as it takes it, then a FIN.
import { createServer, type Socket } from 'node:net';
import { bulkBlock } from '../load/bulk-pattern.ts';

const longestMs = 60_000;
const block = bulkBlock();

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  socket.on('error', () => {}); // its other side sees it
  socket.once('data', (line: Buffer) => stream(socket, Math.min(longestMs, Number(line.toString('latin1')))));
  socket.on('end', () => socket.end());
});
server.listen({ host: '127.0.0.1', port: 0 }, () => {
  const address = server.address();
  console.log(`port ${typeof address === 'object' ? address?.port : ''}`);
});

function stream(socket: Socket, ms: number): void {
  const deadline = performance.now() + ms;
  const next = (): void => {
    if (socket.destroyed || socket.writableEnded) return;
    if (performance.now() < deadline) socket.write(block, next);
    else socket.end();
  };
  next();
}
