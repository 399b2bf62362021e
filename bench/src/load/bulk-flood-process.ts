// A process of its own: `bulk-flood-process.ts PORT SECONDS STREAMS`. Takes so many streams of a bulk source at once, as fast as they come, and
// begins a new one for each that ends or is refused. Prints one line of JSON.
import { connect, type Socket } from 'node:net';

/** So that one that is refused at once does not make this a busy loop. */
const RECONNECT_DELAY_MS = 10;
const ENDLESS_REQUEST = '100000000000\n';

const [port = 0, seconds = 0, streams = 0] = process.argv.slice(2).map(Number);
const shared = Buffer.allocUnsafeSlow(256 * 1024);
const open = new Set<Socket>();
let bytes = 0;
let isOver = false;
for (let stream = 0; stream < streams; stream++) openStream();
setTimeout(() => {
  isOver = true;
  console.log(`report ${JSON.stringify({ bytes })}`);
  for (const socket of open) socket.destroy();
}, seconds * 1000);

function openStream(): void {
  if (isOver) return;
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
