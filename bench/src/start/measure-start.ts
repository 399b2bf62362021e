import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Answering } from '../control/calls.ts';
import { peakKiB } from '../control/own-memory.ts';
import { sameTime } from '../control/same-time.ts';
import { cpuTimeOf } from '../measure/cpu-time.ts';
import { descriptorLimit } from '../measure/descriptors.ts';
import { queuedMsOf } from '../measure/queued-time.ts';
import { longestWait } from './longest-wait.ts';
import type { PublisherCalls } from './publisher-process.ts';
import type { StartLayout } from './start-cluster.ts';
import type { ScrapeReading, StartReading, StartRow } from './start-result.ts';
import { type StartedProxy, startProxy } from './started-proxy.ts';

export const workers = 2;

export type ShareOptions = {
  readonly redis: string;
  /** The proxy's. */
  readonly program: string;
  readonly services: number;
  readonly here: number;
  readonly profile?: string | undefined;
};

const publisher = new URL('publisher-process.ts', import.meta.url);
const forEverythingElse = 600;
const scrapes = 5;
/** What a start has left behind is over by then: the first heartbeats, and garbage. */
const restMs = 5_000;

/** A fleet with a node that serves so many of the Services, published already. */
export class StartShare {
  readonly #options: ShareOptions;
  readonly #fleet = `bench-${randomUUID().slice(0, 8)}`;
  readonly #node = { name: 'start-1', address: `127.93.${2 + (process.pid % 250)}.1` };
  readonly #starts: StartReading[] = [];
  #size = { entries: 0, listeners: 0 };

  private constructor(options: ShareOptions) {
    this.#options = options;
  }

  static async publish(options: ShareOptions): Promise<StartShare> {
    const { redis, services, here } = options;
    const share = new StartShare(options);
    share.#size = await publish(redis, share.#fleet, { services, here: mostHere(here), node: share.#node });
    return share;
  }

  /** Throws when the proxy does not listen for all of them. */
  async start(): Promise<void> {
    await using _proxy = await this.#start();
  }

  /** Once more, and then scrapes. */
  async startAndScrape(): Promise<StartRow> {
    await using proxy = await this.#start();
    await pause(restMs);
    const rest = await longestWait(proxy.admin, () => pause(restMs));
    const read: ScrapeReading[] = [];
    for (let nth = 0; nth < scrapes; nth++) read.push(await scrape(proxy.admin));
    const { entries, listeners } = this.#size;
    const { here: wanted } = this.#options;
    return { entries, here: listeners, wanted, starts: this.#starts, scrapes: read, restMs: rest.ms };
  }

  async #start(): Promise<StartedProxy> {
    const { program, redis, profile } = this.#options;
    const proxy = await startProxy({ program, redis, fleet: this.#fleet, node: this.#node.name, workers, profile });
    try {
      const { userMs, systemMs } = cpuTimeOf(proxy.pid);
      const cpuMs = userMs + systemMs;
      const queuedMs = queuedMsOf(proxy.pid);
      this.#starts.push({ servingMs: proxy.servingMs, cpuMs, queuedMs, peakKiB: peakKiB(proxy.pid) });
      await prove(proxy, this.#size.listeners);
      return proxy;
    } catch (error) {
      await proxy[Symbol.asyncDispose]();
      throw error;
    }
  }
}

/** Each worker has a descriptor for each listener. */
function mostHere(wanted: number): number {
  const most = Math.floor((descriptorLimit() - forEverythingElse) / workers / 10) * 10;
  return Math.min(wanted, most);
}

async function publish(redis: string, fleet: string, layout: StartLayout) {
  await using controller = new Answering<PublisherCalls>(publisher, [redis, fleet, JSON.stringify(layout)]);
  return await controller.call('publish');
}

type SelfView = { readonly listeners: readonly { readonly listening: boolean }[] };

/** Throws unless all of them are listened to. */
async function prove({ admin }: StartedProxy, listeners: number): Promise<void> {
  const view = (await (await fetch(`http://${admin}/debug/listeners`)).json()) as SelfView;
  const open = view.listeners.filter(({ listening }) => listening).length;
  if (open !== listeners) throw new Error(`the proxy listens at ${open} of ${listeners} listeners`);
}

async function scrape(admin: string): Promise<ScrapeReading> {
  const beganAt = sameTime();
  const { ms: waitMs, value } = await longestWait(admin, async () => {
    const text = await (await fetch(`http://${admin}/metrics`)).text();
    return { bytes: Buffer.byteLength(text), ms: sameTime() - beganAt };
  });
  return { ...value, waitMs };
}
