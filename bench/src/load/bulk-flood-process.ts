// Program `bulk-flood-process.ts PORT SECONDS STREAMS`: downloads STREAMS endless streams at the same time for SECONDS seconds. Replaces
// each stream that ends or is refused. Prints the received bytes as a line of JSON.
import { connect, type Socket } from 'node:net';
import { BUFFER_BYTES, ENDLESS_REQUEST } from './bulk-stream.ts';

/** Wait before a stream is replaced. Prevents a busy loop if the proxy refuses connections immediately. */
const RECONNECT_DELAY_MS = 10;

const [port = 0, seconds = 0, streams = 0] = process.argv.slice(2).map(Number);
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);
const open = new Set<Socket>();
let bytes = 0;
let isDone = false;
for (let stream = 0; stream < streams; stream++) openStream();
setTimeout(() => {
  isDone = true;
  console.log(`report ${JSON.stringify({ bytes })}`);
  for (const socket of open) socket.destroy();
}, seconds * 1000);

function openStream(): void {
  if (isDone) return;
  const onread = {
    buffer: shared,
    callback: (count: number): boolean => {
      bytes += count;
      return true;
    },
  };
  const socket = connect({ host: '127.0.0.1', port, onread });
  open.add(socket);
  socket.on('error', () => {});
  socket.on('close', () => {
    open.delete(socket);
    setTimeout(openStream, RECONNECT_DELAY_MS);
  });
  socket.write(ENDLESS_REQUEST);
}
