// The clients: as many new ones per second as are asked for, never more at once than allowed, each with a seed of its own.
import { play } from './client.ts';
import { type DatagramTally, emptyDatagramTally, playDatagrams } from './datagram-clients.ts';
import type { Disturbances } from './disturbances.ts';
import { type Random, randomFrom } from './random.ts';
import { scriptFor, trustedScript } from './script.ts';
import { type ServiceName, sealedHost, serviceNames, services } from './services.ts';
import { count, emptyTally, type Tally } from './tally.ts';

export const most = { open: 400, newPerSecond: 120, datagramClients: 60 };
/** Who comes from here comes through a load balancer that the operator trusts. */
export const trustedNetwork = '127.9.0.0/24';
const turnMs = 25;
const floodEachMs = 12_000;
const flood = 120;

export class Population {
  readonly tallies: Readonly<Record<ServiceName, Tally>>;
  readonly datagrams: DatagramTally = emptyDatagramTally();
  readonly #ports: Readonly<Record<ServiceName, number>>;
  readonly #disturbances: Disturbances;
  readonly #seed: number;
  readonly #choice: Random;
  readonly #playing = new Set<Promise<unknown>>();
  #born = 0;
  #datagramClients = 0;

  constructor(options: { seed: number; ports: Readonly<Record<ServiceName, number>>; disturbances: Disturbances }) {
    this.#seed = options.seed;
    this.#ports = options.ports;
    this.#disturbances = options.disturbances;
    this.#choice = randomFrom(options.seed);
    this.tallies = Object.fromEntries(serviceNames.map((name) => [name, emptyTally()])) as Record<ServiceName, Tally>;
  }

  get open(): number {
    return this.#playing.size;
  }

  get born(): number {
    return this.#born;
  }

  /** Until the signal; resolves when the last of them has gone, none of them thrown out. */
  async run(signal: AbortSignal): Promise<void> {
    let before = performance.now();
    let owed = 0;
    let nextFlood = before + floodEachMs;
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, turnMs));
      const now = performance.now();
      // What a busy machine did not come to do is not made up for.
      owed = Math.min(owed + ((now - before) / 1_000) * most.newPerSecond, most.newPerSecond / 4);
      before = now;
      for (; owed >= 1; owed--) this.#add(this.#next());
      if (now >= nextFlood) {
        nextFlood = now + floodEachMs;
        for (let one = 0; one < flood; one++) this.#add('limited', one % 2 === 0 ? '127.0.30.1' : undefined);
        for (let one = 0; one < 5; one++) this.#addDatagrams({ isFlood: true });
      }
      if (this.#choice.chance(0.3)) this.#addDatagrams({ isFlood: false });
    }
    await Promise.all(this.#playing);
  }

  #next(): ServiceName {
    const total = serviceNames.reduce((sum, name) => sum + services[name].weight, 0);
    let at = this.#choice.next() * total;
    for (const name of serviceNames) {
      at -= services[name].weight;
      if (at < 0) return name;
    }
    return 'calm';
  }

  /** `source`: who it is, if that is not left to chance. */
  #add(name: ServiceName, source?: string): void {
    if (this.open >= most.open) return;
    const key = this.#born++;
    const random = randomFrom(this.#seed ^ Math.imul(key + 1, 0x9e3779b1));
    const { character, isEcho } = services[name];
    const isTrusted = name === 'rough' && random.chance(0.3);
    const script = (isTrusted ? trustedScript : scriptFor)(character, random, sealedHost);
    const tally = this.tallies[name];
    const playing = play({
      port: this.#ports[name],
      source: source ?? `${isTrusted ? '127.9.0' : '127.0.30'}.${random.whole(1, 60)}`,
      script,
      isEcho,
      key,
      onConnect: () => {
        tally.established++;
      },
      signal: this.#disturbances.emergency,
    }).then((played) => {
      if (played === undefined) tally.unconnected++;
      else count(tally, played, { isDisturbed: this.#disturbances.isRecent(name) });
    });
    this.#keep(playing);
  }

  #addDatagrams({ isFlood }: { readonly isFlood: boolean }): void {
    if (this.#datagramClients >= most.datagramClients) return;
    this.#datagramClients++;
    const random = randomFrom(this.#seed ^ Math.imul(this.#born++ + 1, 0x9e3779b1));
    const source = `127.0.31.${random.whole(1, 20)}`;
    const playing = playDatagrams(this.datagrams, random, { port: this.#ports.datagrams, source, isFlood });
    this.#keep(
      playing.finally(() => {
        this.#datagramClients--;
      }),
    );
  }

  #keep(playing: Promise<unknown>): void {
    this.#playing.add(playing);
    void playing.finally(() => this.#playing.delete(playing));
  }
}
