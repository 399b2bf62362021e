// Program `unresponsive-endpoint-process.ts ADDRESS`: listens, fills its own accept queue, prints the port, and never accepts a connection,
// so that further connection attempts get no response.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const server = createServer();
const [host = '127.0.0.1'] = process.argv.slice(2);
// the queue holds one connection more than the backlog
await once(server.listen({ host, port: 0, backlog: 1 }), 'listening');
const { port } = server.address() as AddressInfo;
process.stdout.write(`port ${port}\n`);
for (let count = 0; count < 8; count++) connect({ host, port });
// starts the connections, and then blocks the thread for ever
setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
