// Program `datagram-process.ts PORT SECONDS FLOWS SOURCE`: runs UDP round trips on FLOWS sockets at 127.0.1.SOURCE. Each socket sends a
// numbered datagram of 64 bytes, waits for the echo, and sends the next datagram. Prints the counts as a line of JSON.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { DatagramReport } from './generators.ts';

const MESSAGE_BYTES = 64;
/** A datagram counts as lost if its echo does not arrive within this time. Over loopback an echo takes much less time. */
const LOST_AFTER_MS = 500;

const [port = 0, seconds = 0, flows = 0, source = 0] = process.argv.slice(2).map(Number);

type Flow = { readonly socket: Socket; readonly message: Buffer; number: number; sentAt: number; isPending: boolean };

const count = { sent: 0, roundTrips: 0, corrupted: 0, lost: 0 };
let isDone = false;
let lastEchoAt = 0;

const open = await Promise.all(Array.from({ length: flows }, (_, index) => openFlow(index)));
const startedAt = performance.now();
for (const flow of open) send(flow);
await new Promise<void>((resolve) => {
  const watch = setInterval(() => {
    const now = performance.now();
    isDone ||= now - startedAt >= seconds * 1000;
    for (const flow of open) {
      if (!flow.isPending || now - flow.sentAt < LOST_AFTER_MS) continue;
      count.lost++;
      flow.isPending = false;
      if (!isDone) send(flow);
    }
    if (!isDone || open.some(({ isPending }) => isPending)) return;
    clearInterval(watch);
    resolve();
  }, 20);
});
const report: DatagramReport = { ...count, ms: lastEchoAt - startedAt, messageBytes: MESSAGE_BYTES };
console.log(`report ${JSON.stringify(report)}`);
for (const { socket } of open) socket.close();

async function openFlow(index: number): Promise<Flow> {
  const socket = createSocket('udp4');
  await once(socket.bind({ address: `127.0.1.${source}`, port: 0 }), 'listening');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const message = Buffer.alloc(MESSAGE_BYTES, index);
  const flow: Flow = { socket, message, number: 0, sentAt: 0, isPending: false };
  socket.on('message', (echo) => receive(flow, echo));
  socket.on('error', () => {}); // ignored: after ICMP port unreachable, the datagram counts as lost
  return flow;
}

function send(flow: Flow): void {
  flow.number++;
  flow.message.writeUInt32LE(flow.number, 0);
  flow.sentAt = performance.now();
  flow.isPending = true;
  count.sent++;
  // sent without a copy, because the buffer changes only after the echo has arrived or the datagram is lost
  flow.socket.send(flow.message);
}

function receive(flow: Flow, echo: Buffer): void {
  if (!flow.isPending || flow.message.compare(echo) !== 0) {
    count.corrupted++;
    return;
  }
  flow.isPending = false;
  count.roundTrips++;
  lastEchoAt = performance.now();
  if (!isDone && lastEchoAt - startedAt < seconds * 1000) send(flow);
}
