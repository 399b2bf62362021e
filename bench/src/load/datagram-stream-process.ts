// Program `datagram-stream-process.ts PORT SECONDS FLOWS SOURCE RATE`: sends RATE datagrams per second, one way, on FLOWS sockets at
// 127.0.1.SOURCE, in a burst every millisecond. Then asks the server how many have arrived. Prints the counts as a line of JSON.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { COUNT_REQUEST_BYTES, type DatagramStreamReport, STREAM_DATAGRAM_BYTES } from './datagram-stream.ts';

/** How long the generator waits before it asks for the counts, so that no datagram is still on its way. */
const SETTLE_MS = 200;

const [port = 0, seconds = 0, flows = 0, source = 0, rate = 0] = process.argv.slice(2).map(Number);
const datagram = Buffer.alloc(STREAM_DATAGRAM_BYTES, 7);
const question = Buffer.alloc(COUNT_REQUEST_BYTES);

const sockets = await Promise.all(Array.from({ length: flows }, openSocket));
const total = Math.round(rate * seconds);
const startedAt = performance.now();
let sent = 0;
while (sent < total) {
  const due = Math.min(total, Math.ceil(((performance.now() - startedAt) / 1000) * rate));
  for (; sent < due; sent++) sockets[sent % flows]?.send(datagram);
  await setTimeout(1);
}
const ms = performance.now() - startedAt;
await setTimeout(SETTLE_MS);
let arrived = 0;
let receivedBytes = 0;
for (const socket of sockets) {
  socket.send(question);
  const [answer] = (await once(socket, 'message')) as [Buffer];
  arrived += Number(answer);
  receivedBytes += answer.length;
  socket.close();
}
const traffic = { sentBytes: sent * STREAM_DATAGRAM_BYTES + flows * COUNT_REQUEST_BYTES, receivedBytes };
const report: DatagramStreamReport = { sent, arrived, ms, traffic };
console.log(`report ${JSON.stringify(report)}`);

async function openSocket(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', sendBufferSize: 4 * 1024 * 1024 });
  await once(socket.bind({ address: `127.0.1.${source}`, port: 0 }), 'listening');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => {}); // ignored: after ICMP port unreachable, the datagram counts as lost
  return socket;
}
