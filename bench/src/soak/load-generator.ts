import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { addClientResult, type ClientTotals, emptyClientTotals } from './client-totals.ts';
import type { FaultInjector } from './fault-injector.ts';
import { type Random, seededRandom } from './random.ts';
import { scriptFor, scriptWithProxyHeader } from './script.ts';
import { PASSTHROUGH_HOST, SERVICE_NAMES, SERVICES, type ServiceName } from './services.ts';
import { runTcpClient } from './tcp-client.ts';

// The clients: as many new ones per second as are asked for, never more at once than allowed, each with a seed of its own.
export const LOAD_LIMITS = { open: 400, newPerSecond: 120, datagramClients: 60 };
/** Who comes from here comes through a load balancer that the operator trusts. */
export const TRUSTED_NETWORK = '127.9.0.0/24';
const TICK_MS = 25;
const FLOOD_INTERVAL_MS = 12_000;
const FLOOD_CLIENTS = 120;

export class LoadGenerator {
  readonly clientTotals: Readonly<Record<ServiceName, ClientTotals>>;
  readonly datagramTotals: DatagramTotals = emptyDatagramTotals();
  readonly #ports: Readonly<Record<ServiceName, number>>;
  readonly #faultInjector: FaultInjector;
  readonly #seed: number;
  readonly #random: Random;
  readonly #runningClients = new Set<Promise<unknown>>();
  #startedClients = 0;
  #udpClients = 0;

  constructor(options: { seed: number; ports: Readonly<Record<ServiceName, number>>; disturbances: FaultInjector }) {
    this.#seed = options.seed;
    this.#ports = options.ports;
    this.#faultInjector = options.disturbances;
    this.#random = seededRandom(options.seed);
    this.clientTotals = Object.fromEntries(SERVICE_NAMES.map((name) => [name, emptyClientTotals()])) as Record<
      ServiceName,
      ClientTotals
    >;
  }

  get openClients(): number {
    return this.#runningClients.size;
  }

  get startedClients(): number {
    return this.#startedClients;
  }

  /** Until the signal; resolves when the last of them has gone, none of them thrown out. */
  async run(signal: AbortSignal): Promise<void> {
    let before = performance.now();
    let owed = 0;
    let nextFlood = before + FLOOD_INTERVAL_MS;
    while (!signal.aborted) {
      await setTimeout(TICK_MS);
      const now = performance.now();
      // What a busy machine did not come to do is not made up for.
      owed = Math.min(owed + ((now - before) / 1_000) * LOAD_LIMITS.newPerSecond, LOAD_LIMITS.newPerSecond / 4);
      before = now;
      for (; owed >= 1; owed--) this.#startTcpClient(this.#chooseService());
      if (now >= nextFlood) {
        nextFlood = now + FLOOD_INTERVAL_MS;
        for (let one = 0; one < FLOOD_CLIENTS; one++)
          this.#startTcpClient('limited', one % 2 === 0 ? '127.0.30.1' : undefined);
        for (let one = 0; one < 5; one++) this.#startUdpClient({ isFlood: true });
      }
      if (this.#random.chance(0.3)) this.#startUdpClient({ isFlood: false });
    }
    await Promise.all(this.#runningClients);
  }

  #chooseService(): ServiceName {
    const total = SERVICE_NAMES.reduce((sum, name) => sum + SERVICES[name].weight, 0);
    let at = this.#random.next() * total;
    for (const name of SERVICE_NAMES) {
      at -= SERVICES[name].weight;
      if (at < 0) return name;
    }
    return 'calm';
  }

  /** `source`: who it is, if that is not left to chance. */
  #startTcpClient(name: ServiceName, source?: string): void {
    if (this.openClients >= LOAD_LIMITS.open) return;
    const key = this.#startedClients++;
    const random = seededRandom(this.#seed ^ Math.imul(key + 1, 0x9e3779b1));
    const { clientProfile, isEcho } = SERVICES[name];
    const isTrusted = name === 'rough' && random.chance(0.3);
    const script = (isTrusted ? scriptWithProxyHeader : scriptFor)(clientProfile, random, PASSTHROUGH_HOST);
    const tally = this.clientTotals[name];
    const playing = runTcpClient({
      port: this.#ports[name],
      source: source ?? `${isTrusted ? '127.9.0' : '127.0.30'}.${random.integer(1, 60)}`,
      script,
      isEcho,
      key,
      onConnect: () => {
        tally.established++;
      },
      signal: this.#faultInjector.clientAbortSignal,
    }).then((played) => {
      if (played === undefined) tally.connectFailures++;
      else addClientResult(tally, played, { isDisturbed: this.#faultInjector.isRecentlyDisturbed(name) });
    });
    this.#track(playing);
  }

  #startUdpClient({ isFlood }: { readonly isFlood: boolean }): void {
    if (this.#udpClients >= LOAD_LIMITS.datagramClients) return;
    this.#udpClients++;
    const random = seededRandom(this.#seed ^ Math.imul(this.#startedClients++ + 1, 0x9e3779b1));
    const source = `127.0.31.${random.integer(1, 20)}`;
    const playing = runUdpClient(this.datagramTotals, random, { port: this.#ports.datagrams, source, isFlood });
    this.#track(
      playing.finally(() => {
        this.#udpClients--;
      }),
    );
  }

  #track(playing: Promise<unknown>): void {
    this.#runningClients.add(playing);
    void playing.finally(() => this.#runningClients.delete(playing));
  }
}

// UDP clients that change all the time: each has a source port of its own, and is silent sometimes.
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
