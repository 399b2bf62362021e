import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { addClientResult, type ClientTotals, emptyClientTotals } from './client-totals.ts';
import type { FaultInjector } from './fault-injector.ts';
import { type Random, seededRandom } from './random.ts';
import { scriptFor, scriptWithProxyHeader } from './script.ts';
import { PASSTHROUGH_HOST, SERVICE_NAMES, SERVICES, type ServiceName } from './services.ts';
import { runTcpClient } from './tcp-client.ts';

/** The clients to start: `newPerSecond` TCP clients a second up to `open` running clients, and up to `datagramClients` UDP clients. */
export const LOAD_LIMITS = { open: 400, newPerSecond: 120, datagramClients: 60 };
/** The proxy trusts PROXY headers from this network. Some clients connect from it and send a header, as a load balancer does. */
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

  constructor(options: { seed: number; ports: Readonly<Record<ServiceName, number>>; faultInjector: FaultInjector }) {
    this.#seed = options.seed;
    this.#ports = options.ports;
    this.#faultInjector = options.faultInjector;
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

  /** Starts clients until `signal` is aborted. Resolves when the last client has ended. */
  async run(signal: AbortSignal): Promise<void> {
    let before = performance.now();
    let dueClients = 0;
    let nextFlood = before + FLOOD_INTERVAL_MS;
    while (!signal.aborted) {
      await setTimeout(TICK_MS);
      const now = performance.now();
      // the limit prevents a burst of clients after a stall of the machine
      dueClients = Math.min(
        dueClients + ((now - before) / 1_000) * LOAD_LIMITS.newPerSecond,
        LOAD_LIMITS.newPerSecond / 4,
      );
      before = now;
      for (; dueClients >= 1; dueClients--) this.#startTcpClient(this.#chooseService());
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
    return 'orderly';
  }

  /** Starts one TCP client. `source` is the client address; default: a random address. */
  #startTcpClient(name: ServiceName, source?: string): void {
    if (this.openClients >= LOAD_LIMITS.open) return;
    const key = this.#startedClients++;
    const random = seededRandom(this.#seed ^ Math.imul(key + 1, 0x9e3779b1));
    const { clientProfile, isEcho } = SERVICES[name];
    const isTrusted = name === 'aborting' && random.chance(0.3);
    const script = (isTrusted ? scriptWithProxyHeader : scriptFor)(clientProfile, random, PASSTHROUGH_HOST);
    const totals = this.clientTotals[name];
    const running = runTcpClient({
      port: this.#ports[name],
      source: source ?? `${isTrusted ? '127.9.0' : '127.0.30'}.${random.integer(1, 60)}`,
      script,
      isEcho,
      key,
      onConnect: () => {
        totals.established++;
      },
      signal: this.#faultInjector.clientAbortSignal,
    }).then((result) => {
      if (result === undefined) totals.connectFailures++;
      else addClientResult(totals, result, { isDisturbed: this.#faultInjector.isRecentlyDisturbed(name) });
    });
    this.#track(running);
  }

  #startUdpClient({ isFlood }: { readonly isFlood: boolean }): void {
    if (this.#udpClients >= LOAD_LIMITS.datagramClients) return;
    this.#udpClients++;
    const random = seededRandom(this.#seed ^ Math.imul(this.#startedClients++ + 1, 0x9e3779b1));
    const source = `127.0.31.${random.integer(1, 20)}`;
    const running = runUdpClient(this.datagramTotals, random, { port: this.#ports.datagrams, source, isFlood });
    this.#track(
      running.finally(() => {
        this.#udpClients--;
      }),
    );
  }

  #track(running: Promise<unknown>): void {
    this.#runningClients.add(running);
    void running.finally(() => this.#runningClients.delete(running));
  }
}

/** Totals of all UDP clients. Each client has its own socket. */
export type DatagramTotals = {
  /** Number of sockets that sent datagrams. */
  sockets: number;
  answeredSockets: number;
  sentBytes: number;
  readBytes: number;
  corrupted: number;
};

export function emptyDatagramTotals(): DatagramTotals {
  return { sockets: 0, answeredSockets: 0, sentBytes: 0, readBytes: 0, corrupted: 0 };
}

/** Runs one UDP client from its first to its last datagram. The client pauses between datagrams, except during a flood. */
export async function runUdpClient(
  totals: DatagramTotals,
  random: Random,
  { port, source, isFlood }: { readonly port: number; readonly source: string; readonly isFlood: boolean },
): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('error', () => {}); // ignored: ICMP port unreachable while the listener is closed
  const bytes = Buffer.alloc(random.integer(1, 1_200), random.integer(0, 255));
  let hasResponse = false;
  socket.on('message', (message) => {
    if (!hasResponse) totals.answeredSockets++;
    hasResponse = true;
    totals.readBytes += message.length;
    if (!message.equals(bytes)) totals.corrupted++;
  });
  await once(socket.bind({ address: source, port: 0 }), 'listening');
  totals.sockets++;
  const times = isFlood ? 40 : random.integer(1, 12);
  for (let time = 0; time < times; time++) {
    if (await sendDatagram(socket, bytes, port)) totals.sentBytes += bytes.length;
    if (!isFlood) await setTimeout(random.integer(5, 600));
  }
  await setTimeout(500);
  socket.close();
}

function sendDatagram(socket: Socket, bytes: Buffer, port: number): Promise<boolean> {
  return new Promise((resolve) => socket.send(bytes, port, '127.0.0.1', (error) => resolve(error === null)));
}
