// Program `idle-connections-process.ts PORT CONNECTIONS`: opens connections to an echo backend and keeps the connections open. Waits for
// the echo of one byte on each connection, so that the proxy is connected to the backend too. Then prints `open`.
import { once } from 'node:events';
import { connect } from 'node:net';

/** Less than the listen backlogs of the proxies and of the echo backend, so that no connection attempt is refused. */
const MAX_PENDING_CONNECTIONS = 64;
/** Number of source addresses. Each address has its own range of ephemeral ports. */
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
    const echoed = once(socket, 'data'); // rejects if the connection fails
    socket.write(byte);
    await echoed;
    socket.once('close', () => {
      throw new Error('one of the idle connections was closed');
    });
  }
}
