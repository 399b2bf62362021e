// Program `unresponsive-endpoint-process.ts ADDRESS`: an endpoint that does not respond to connection attempts, because its accept queue
// is full. Listens, prints the port, fills the queue with its own connections, and never accepts a connection.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const server = createServer();
const [host = '127.0.0.1'] = process.argv.slice(2);
// the queue holds one connection more than the backlog
await once(server.listen({ host, port: 0, backlog: 1 }), 'listening');
const { port } = server.address() as AddressInfo;
process.stdout.write(`port ${port}\n`);
for (let count = 0; count < 8; count++) connect({ host, port });
// blocks the thread for ever, after the connection attempts have started
setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
