// A process of its own: TCP and UDP at 127.0.0.1, what comes in goes back. Prints both ports.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

const host = '127.0.0.1';
/** What does not fit into the socket's buffer is lost, and 64 flows never have more than one datagram each under way. */
const DATAGRAM_BUFFER_BYTES = 1024 * 1024;

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
  socket.on('error', () => {}); // its other side sees it
  socket.pipe(socket);
});
await once(server.listen({ host, port: 0, backlog: 4096 }), 'listening');

const datagrams = createSocket({
  type: 'udp4',
  recvBufferSize: DATAGRAM_BUFFER_BYTES,
  sendBufferSize: DATAGRAM_BUFFER_BYTES,
});
datagrams.on('message', (message, from) => datagrams.send(message, from.port, from.address));
datagrams.on('error', () => {}); // a client that has gone answers by ICMP
await once(datagrams.bind({ address: host, port: 0 }), 'listening');

console.log(`ports ${(server.address() as AddressInfo).port} ${datagrams.address().port}`);
