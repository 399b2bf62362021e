// A process of its own: `unresponsive-endpoint-process.ts ADDRESS`. Listens, fills its own queue, prints the port, and never takes a connection: to the
// next who connect nothing at all is answered.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const server = createServer();
const [host = '127.0.0.1'] = process.argv.slice(2);
// The queue takes one more than the backlog.
await once(server.listen({ host, port: 0, backlog: 1 }), 'listening');
const { port } = server.address() as AddressInfo;
process.stdout.write(`port ${port}\n`);
for (let count = 0; count < 8; count++) connect({ host, port });
// Begins to connect, and then neither accepts nor does anything else.
setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
