// Program `idle-connections-process.ts PORT CONNECTIONS`: opens connections to an echo, waits for the echo of one byte on each, so that both
// sides of the proxy are connected, prints `open`, and keeps the connections open.
import { once } from 'node:events';
import { connect } from 'node:net';

/** Less than the listen backlog of the proxies and of the echo. */
const MAX_PENDING_CONNECTIONS = 64;
/** Each source address has its own ephemeral ports. */
const SOURCE_ADDRESSES = 4;

const [port = 0, connections = 0] = process.argv.slice(2).map(Number);
const byte = Buffer.from('x');
let next = 0;
await Promise.all(Array.from({ length: MAX_PENDING_CONNECTIONS }, openSequentially));
console.log('open');
setInterval(() => {}, 1 << 30);

async function openSequentially(): Promise<void> {
  while (next < connections) {
    const localAddress = `127.0.0.${2 + (next++ % SOURCE_ADDRESSES)}`;
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    const echoed = once(socket, 'data'); // rejects on an error
    socket.write(byte);
    await echoed;
    socket.once('close', () => {
      throw new Error('one of the idle connections was closed');
    });
  }
}
