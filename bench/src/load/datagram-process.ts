// A process of its own: `datagram-process.ts PORT SECONDS FLOWS SOURCE`. Each flow is a connected socket at 127.0.1.SOURCE that sends a numbered datagram of 64
// bytes, and the next one when it has come back. Prints one line of JSON.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { DatagramReport } from './generators.ts';

const MESSAGE_BYTES = 64;
/** On loopback nothing is this late that is not lost. */
const LOST_AFTER_MS = 500;

const [port = 0, seconds = 0, flows = 0, source = 0] = process.argv.slice(2).map(Number);

type Flow = { readonly socket: Socket; readonly message: Buffer; number: number; sentAt: number; isUnderWay: boolean };

const count = { sent: 0, roundTrips: 0, foreign: 0, lost: 0 };
let isOver = false;
let lastAt = 0;

const open = await Promise.all(Array.from({ length: flows }, (_, index) => openFlow(index)));
const beginAt = performance.now();
for (const flow of open) send(flow);
await new Promise<void>((resolve) => {
  const watch = setInterval(() => {
    const now = performance.now();
    isOver ||= now - beginAt >= seconds * 1000;
    for (const flow of open) {
      if (!flow.isUnderWay || now - flow.sentAt < LOST_AFTER_MS) continue;
      count.lost++;
      flow.isUnderWay = false;
      if (!isOver) send(flow);
    }
    if (!isOver || open.some(({ isUnderWay }) => isUnderWay)) return;
    clearInterval(watch);
    resolve();
  }, 20);
});
const report: DatagramReport = { ...count, ms: lastAt - beginAt, messageBytes: MESSAGE_BYTES };
console.log(`report ${JSON.stringify(report)}`);
for (const { socket } of open) socket.close();

async function openFlow(index: number): Promise<Flow> {
  const socket = createSocket('udp4');
  await once(socket.bind({ address: `127.0.1.${source}`, port: 0 }), 'listening');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const message = Buffer.alloc(MESSAGE_BYTES, index);
  const flow: Flow = { socket, message, number: 0, sentAt: 0, isUnderWay: false };
  socket.on('message', (echo) => receive(flow, echo));
  socket.on('error', () => {}); // ICMP: nobody listens; counted as lost
  return flow;
}

function send(flow: Flow): void {
  flow.number++;
  flow.message.writeUInt32LE(flow.number, 0);
  flow.sentAt = performance.now();
  flow.isUnderWay = true;
  count.sent++;
  // sent at once or not at all: the next number is written only after this one has come back
  flow.socket.send(flow.message);
}

function receive(flow: Flow, echo: Buffer): void {
  if (!flow.isUnderWay || flow.message.compare(echo) !== 0) {
    count.foreign++;
    return;
  }
  flow.isUnderWay = false;
  count.roundTrips++;
  lastAt = performance.now();
  if (!isOver && lastAt - beginAt < seconds * 1000) send(flow);
}
