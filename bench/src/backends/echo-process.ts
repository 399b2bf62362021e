// Program `echo-process.ts`: a TCP and a UDP echo server at 127.0.0.1. Prints the TCP port and the UDP port.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

const host = '127.0.0.1';
/** Large enough for the pending datagrams of all flows, because a datagram that does not fit into the buffer is lost. */
const DATAGRAM_BUFFER_BYTES = 1024 * 1024;

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
  socket.on('error', () => {}); // ignored, because the client reports the error
  socket.pipe(socket);
});
await once(server.listen({ host, port: 0, backlog: 4096 }), 'listening');

const datagrams = createSocket({
  type: 'udp4',
  recvBufferSize: DATAGRAM_BUFFER_BYTES,
  sendBufferSize: DATAGRAM_BUFFER_BYTES,
});
datagrams.on('message', (message, from) => datagrams.send(message, from.port, from.address));
datagrams.on('error', () => {}); // ignored: ICMP port unreachable after a client closed its socket
await once(datagrams.bind({ address: host, port: 0 }), 'listening');

console.log(`ports ${(server.address() as AddressInfo).port} ${datagrams.address().port}`);
