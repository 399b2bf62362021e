import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { RpcProcess } from '../control/calls.ts';
import { peakResidentKiB } from '../control/own-memory.ts';
import { monotonicMs } from '../control/same-time.ts';
import { cpuTimeOf } from '../measure/cpu-time.ts';
import { descriptorLimit } from '../measure/descriptors.ts';
import { runQueueMsOf } from '../measure/queued-time.ts';
import { measureMaxResponseTime } from './longest-wait.ts';
import type { PublisherRpc } from './publisher-process.ts';
import type { StartLayout } from './start-cluster.ts';
import type { ProxyStartReading, ProxyStartRow, ScrapeReading } from './start-result.ts';
import { type ServingProxy, startProxyUntilServing } from './started-proxy.ts';

export const WORKERS = 2;

export type PublishedFleetOptions = {
  readonly redis: string;
  /** The proxy's. */
  readonly program: string;
  readonly services: number;
  readonly here: number;
  readonly profile?: string | undefined;
};

const PUBLISHER_PROGRAM = new URL('publisher-process.ts', import.meta.url);
const RESERVED_DESCRIPTORS = 600;
const SCRAPES = 5;
/** What a start has left behind is over by then: the first heartbeats, and garbage. */
const REST_MS = 5_000;

/** A fleet with a node that serves so many of the Services, published already. */
export class PublishedFleet {
  readonly #options: PublishedFleetOptions;
  readonly #fleet = `bench-${randomUUID().slice(0, 8)}`;
  readonly #node = { name: 'start-1', address: `127.93.${2 + (process.pid % 250)}.1` };
  readonly #startReadings: ProxyStartReading[] = [];
  #tableSize = { entries: 0, listeners: 0 };

  private constructor(options: PublishedFleetOptions) {
    this.#options = options;
  }

  static async publish(options: PublishedFleetOptions): Promise<PublishedFleet> {
    const { redis, services, here } = options;
    const share = new PublishedFleet(options);
    share.#tableSize = await publishTable(redis, share.#fleet, {
      services,
      here: maxServicesOnNode(here),
      node: share.#node,
    });
    return share;
  }

  /** Throws when the proxy does not listen for all of them. */
  async startProxy(): Promise<void> {
    await using _proxy = await this.#startAndVerify();
  }

  /** Once more, and then scrapes. */
  async startAndScrapeProxy(): Promise<ProxyStartRow> {
    await using proxy = await this.#startAndVerify();
    await pause(REST_MS);
    const rest = await measureMaxResponseTime(proxy.admin, () => pause(REST_MS));
    const read: ScrapeReading[] = [];
    for (let nth = 0; nth < SCRAPES; nth++) read.push(await scrape(proxy.admin));
    const { entries, listeners } = this.#tableSize;
    const { here: wanted } = this.#options;
    return { entries, here: listeners, wanted, starts: this.#startReadings, scrapes: read, restMs: rest.ms };
  }

  async #startAndVerify(): Promise<ServingProxy> {
    const { program, redis, profile } = this.#options;
    const proxy = await startProxyUntilServing({
      program,
      redis,
      fleet: this.#fleet,
      node: this.#node.name,
      workers: WORKERS,
      profile,
    });
    try {
      const { userMs, systemMs } = cpuTimeOf(proxy.pid);
      const cpuMs = userMs + systemMs;
      const queuedMs = runQueueMsOf(proxy.pid);
      this.#startReadings.push({ servingMs: proxy.servingMs, cpuMs, queuedMs, peakKiB: peakResidentKiB(proxy.pid) });
      await verifyListeners(proxy, this.#tableSize.listeners);
      return proxy;
    } catch (error) {
      await proxy[Symbol.asyncDispose]();
      throw error;
    }
  }
}

/** Each worker has a descriptor for each listener. */
function maxServicesOnNode(wanted: number): number {
  const most = Math.floor((descriptorLimit() - RESERVED_DESCRIPTORS) / WORKERS / 10) * 10;
  return Math.min(wanted, most);
}

async function publishTable(redis: string, fleet: string, layout: StartLayout) {
  await using controller = new RpcProcess<PublisherRpc>(PUBLISHER_PROGRAM, [redis, fleet, JSON.stringify(layout)]);
  return await controller.call('publish');
}

type ListenersView = { readonly listeners: readonly { readonly listening: boolean }[] };

/** Throws unless all of them are listened to. */
async function verifyListeners({ admin }: ServingProxy, listeners: number): Promise<void> {
  const view = (await (await fetch(`http://${admin}/debug/listeners`)).json()) as ListenersView;
  const open = view.listeners.filter(({ listening }) => listening).length;
  if (open !== listeners) throw new Error(`the proxy listens at ${open} of ${listeners} listeners`);
}

async function scrape(admin: string): Promise<ScrapeReading> {
  const beganAt = monotonicMs();
  const { ms: waitMs, value } = await measureMaxResponseTime(admin, async () => {
    const text = await (await fetch(`http://${admin}/metrics`)).text();
    return { bytes: Buffer.byteLength(text), ms: monotonicMs() - beganAt };
  });
  return { ...value, waitMs };
}
