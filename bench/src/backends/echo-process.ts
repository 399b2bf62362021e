// Program `echo-process.ts`: a TCP and a UDP echo server at 127.0.0.1. Prints the TCP port and the UDP port. The UDP server only counts
// datagrams of a stream, and tells a client its count if the client asks.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { COUNT_REQUEST_BYTES, STREAM_DATAGRAM_BYTES } from '../load/datagram-stream.ts';
import { DATAGRAM_BUFFER_BYTES } from '../subjects/subject.ts';

const host = '127.0.0.1';

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
/** Number of datagrams of a stream, by client. */
const streamCounts = new Map<string, number>();
datagrams.on('message', (message, from) => {
  const client = `${from.address}|${from.port}`;
  const count = streamCounts.get(client) ?? 0;
  if (message.length === STREAM_DATAGRAM_BYTES) streamCounts.set(client, count + 1);
  else if (message.length === COUNT_REQUEST_BYTES) {
    streamCounts.delete(client);
    datagrams.send(JSON.stringify(count), from.port, from.address);
  } else datagrams.send(message, from.port, from.address);
});
datagrams.on('error', () => {}); // ignored: ICMP port unreachable after a client closed its socket
await once(datagrams.bind({ address: host, port: 0 }), 'listening');

console.log(`ports ${(server.address() as AddressInfo).port} ${datagrams.address().port}`);
