// UDP clients that change all the time: each has a source port of its own, and is silent sometimes.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Random } from './random.ts';

export type DatagramTotals = {
  /** Source ports that sent something. */
  sockets: number;
  answered: number;
  sentBytes: number;
  readBytes: number;
  foreign: number;
};

export function emptyDatagramTotals(): DatagramTotals {
  return { sockets: 0, answered: 0, sentBytes: 0, readBytes: 0, foreign: 0 };
}

/** One client from its first datagram to its last. `isFlood`: it sends without waiting for answers. */
export async function runUdpClient(
  tally: DatagramTotals,
  random: Random,
  { port, source, isFlood }: { readonly port: number; readonly source: string; readonly isFlood: boolean },
): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('error', () => {}); // ICMP, while nobody listens
  const bytes = Buffer.alloc(random.integer(1, 1_200), random.integer(0, 255));
  let hasAnswer = false;
  socket.on('message', (message) => {
    if (!hasAnswer) tally.answered++;
    hasAnswer = true;
    tally.readBytes += message.length;
    if (!message.equals(bytes)) tally.foreign++;
  });
  await once(socket.bind({ address: source, port: 0 }), 'listening');
  tally.sockets++;
  const times = isFlood ? 40 : random.integer(1, 12);
  for (let time = 0; time < times; time++) {
    if (await sendDatagram(socket, bytes, port)) tally.sentBytes += bytes.length;
    if (!isFlood) await setTimeout(random.integer(5, 600));
  }
  await setTimeout(500);
  socket.close();
}

function sendDatagram(socket: Socket, bytes: Buffer, port: number): Promise<boolean> {
  return new Promise((resolve) => socket.send(bytes, port, '127.0.0.1', (error) => resolve(error === null)));
}
