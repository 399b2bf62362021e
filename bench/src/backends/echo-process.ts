// Program `echo-process.ts`: echoes TCP and UDP at 127.0.0.1, and prints both ports.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

const host = '127.0.0.1';
/** Datagrams that exceed the buffer are lost; this size holds the pending datagrams of all flows. */
const DATAGRAM_BUFFER_BYTES = 1024 * 1024;

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
  socket.on('error', () => {}); // the client reports the error
  socket.pipe(socket);
});
await once(server.listen({ host, port: 0, backlog: 4096 }), 'listening');

const datagrams = createSocket({
  type: 'udp4',
  recvBufferSize: DATAGRAM_BUFFER_BYTES,
  sendBufferSize: DATAGRAM_BUFFER_BYTES,
});
datagrams.on('message', (message, from) => datagrams.send(message, from.port, from.address));
datagrams.on('error', () => {}); // ICMP port unreachable from a closed client
await once(datagrams.bind({ address: host, port: 0 }), 'listening');

console.log(`ports ${(server.address() as AddressInfo).port} ${datagrams.address().port}`);
