// Program `bulk-source-process.ts [BYTES]`: a server of streams of any length. With BYTES, its sockets have send buffers of this size. A client sends one line with the number of bytes. The server
// responds with this number of bytes, by repeating the block that `bulk-stream.ts` defines, and with FIN.
import { createServer, type Socket } from 'node:net';
import { BLOCK_BYTES, bulkBlock } from '../load/bulk-stream.ts';
import { setSendBuffer } from '../measure/socket-memory.ts';

const MAX_STREAM_BYTES = 100e9;
const block = bulkBlock();

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  socket.on('error', () => {}); // ignored, because the client reports the error
  socket.once('data', (line: Buffer) => send(socket, Math.min(MAX_STREAM_BYTES, Number(line.toString('latin1')))));
  socket.on('end', () => socket.end());
});
server.listen({ host: '127.0.0.1', port: 0 }, () => {
  // Accepted sockets inherit the size.
  const sendBufferBytes = Number(process.argv[2] ?? 0);
  if (sendBufferBytes > 0) setSendBuffer(server, sendBufferBytes);
  const address = server.address();
  console.log(`port ${typeof address === 'object' ? address?.port : ''}`);
});

function send(socket: Socket, bytes: number): void {
  let left = bytes;
  const next = (): void => {
    if (socket.destroyed || socket.writableEnded) return;
    const size = Math.min(left, BLOCK_BYTES);
    left -= size;
    if (size > 0) socket.write(block.subarray(0, size), next);
    else socket.end();
  };
  next();
}
