import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import {
  cpuTimeOf,
  descriptorLimit,
  peakResidentKiB,
  RESERVED_DESCRIPTORS,
  runQueueMsOf,
} from '../measure/proc-stats.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { type ServingProxy, startProxyUntilServing } from '../processes/weir-proxy.ts';
import type { PublisherRpc } from './publisher-process.ts';
import type { StartLayout } from './start-cluster.ts';
import type { ProxyStartReading, ProxyStartReadings, ScrapeReading } from './start-result.ts';

export const WORKERS = 2;

export type MeasureStartsOptions = Omit<PublishedFleetOptions, 'servicesOnNode'> & {
  readonly servicesOnNode: readonly number[];
  readonly rounds: number;
  readonly signal: AbortSignal;
  readonly logProgress: (text: string) => void;
};

/**
 * Measures starts of proxies. Every round starts one proxy for each number of Services, so that other load on the machine affects all
 * numbers alike. If a start fails, the remaining rounds leave out this number, and `failures` contains the reason.
 */
export async function measureStarts(
  options: MeasureStartsOptions,
): Promise<{ rows: ProxyStartReadings[]; failures: string[] }> {
  const { servicesOnNode: counts, rounds, signal, logProgress, ...common } = options;
  const fleets = new Map<number, PublishedFleet>();
  const rows: ProxyStartReadings[] = [];
  const failures: string[] = [];
  const attempt = async (count: number, work: () => Promise<void>): Promise<void> => {
    if (signal.aborted) return;
    try {
      await work();
    } catch (error) {
      fleets.delete(count);
      failures.push(`${count} Services on the node: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  for (const count of counts) {
    await attempt(count, async () => {
      fleets.set(count, await PublishedFleet.publish({ ...common, servicesOnNode: count }));
    });
  }
  for (let round = 1; round < rounds; round++) {
    for (const [count, fleet] of fleets) await attempt(count, () => fleet.startProxy());
    logProgress(`${round} of ${rounds} starts for each number of Services`);
  }
  for (const [count, fleet] of fleets) {
    await attempt(count, async () => {
      const row = await fleet.startAndScrapeProxy();
      rows.push(row);
      const servingMs = row.starts.map((start) => start.servingMs.toFixed(0)).join(', ');
      logProgress(`${row.servicesOnNode} Services on the node: serving after ${servingMs} ms`);
    });
  }
  return { rows, failures };
}

export type PublishedFleetOptions = {
  /** URL of Redis. */
  readonly redis: string;
  /** Path of the compiled proxy. */
  readonly program: string;
  readonly services: number;
  readonly servicesOnNode: number;
  readonly profileDirectory?: string | undefined;
};

const PUBLISHER_PROGRAM = new URL('publisher-process.ts', import.meta.url);
const SCRAPES = 5;
/** Wait after the start, so that the proxy has sent its first heartbeats and collected the garbage of the start. */
const REST_MS = 5_000;

/** A fleet with a published table. Starts the proxy of one node repeatedly. */
class PublishedFleet {
  readonly #options: PublishedFleetOptions;
  readonly #fleet = `bench-${randomUUID().slice(0, 8)}`;
  readonly #node = { name: 'start-1', address: `127.93.${2 + (process.pid % 250)}.1` };
  readonly #startReadings: ProxyStartReading[] = [];
  #tableSize = { entries: 0, listeners: 0 };

  private constructor(options: PublishedFleetOptions) {
    this.#options = options;
  }

  static async publish(options: PublishedFleetOptions): Promise<PublishedFleet> {
    const { redis, services, servicesOnNode } = options;
    const fleet = new PublishedFleet(options);
    fleet.#tableSize = await publishTable(redis, fleet.#fleet, {
      services,
      servicesOnNode: maxServicesOnNode(servicesOnNode),
      node: fleet.#node,
    });
    return fleet;
  }

  /** Starts and stops the proxy. Throws if the proxy does not listen for all Services of its node. */
  async startProxy(): Promise<void> {
    await using _proxy = await this.#startAndVerify();
  }

  /** Starts the proxy for the last time, scrapes its metrics, and returns the readings of all starts. */
  async startAndScrapeProxy(): Promise<ProxyStartReadings> {
    await using proxy = await this.#startAndVerify();
    await sleep(REST_MS);
    const { ms: restMs } = await measureMaxResponseTime(proxy.admin, () => sleep(REST_MS));
    const scrapes: ScrapeReading[] = [];
    for (let count = 0; count < SCRAPES; count++) scrapes.push(await scrape(proxy.admin));
    const { entries, listeners: servicesOnNode } = this.#tableSize;
    const { servicesOnNode: requestedServices } = this.#options;
    return { entries, servicesOnNode, requestedServices, starts: this.#startReadings, scrapes, restMs };
  }

  async #startAndVerify(): Promise<ServingProxy> {
    const { program, redis, profileDirectory } = this.#options;
    const proxy = await startProxyUntilServing({
      program,
      redis,
      fleet: this.#fleet,
      node: this.#node.name,
      workers: WORKERS,
      profileDirectory,
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

/** Returns the requested number, or less if the descriptor limit requires it. Each worker needs a descriptor for each Service. */
function maxServicesOnNode(requested: number): number {
  const max = Math.floor((descriptorLimit() - RESERVED_DESCRIPTORS) / WORKERS / 10) * 10;
  return Math.min(requested, max);
}

async function publishTable(redis: string, fleet: string, layout: StartLayout) {
  await using controller = new RpcProcess<PublisherRpc>(PUBLISHER_PROGRAM, [redis, fleet, JSON.stringify(layout)]);
  return await controller.call('publish');
}

type ListenersView = { readonly listeners: readonly { readonly listening: boolean }[] };

/** Throws unless the proxy has opened exactly this number of listeners. */
async function verifyListeners({ admin }: ServingProxy, listeners: number): Promise<void> {
  const view = (await (await fetch(`http://${admin}/debug/listeners`)).json()) as ListenersView;
  const open = view.listeners.filter(({ listening }) => listening).length;
  if (open !== listeners) throw new Error(`the proxy has opened ${open} of ${listeners} listeners`);
}

async function scrape(admin: string): Promise<ScrapeReading> {
  const startedAt = monotonicMs();
  const { ms: waitMs, value } = await measureMaxResponseTime(admin, async () => {
    const text = await (await fetch(`http://${admin}/metrics`)).text();
    return { bytes: Buffer.byteLength(text), ms: monotonicMs() - startedAt };
  });
  return { ...value, waitMs };
}

const PROBE_INTERVAL_MS = 5;

/** Returns the longest response time of the main thread to repeated health checks, which run on one connection until `work` ends. */
export async function measureMaxResponseTime<T>(
  admin: string,
  work: () => Promise<T>,
): Promise<{ readonly ms: number; readonly value: T }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isDone = false;
  const working = work().finally(() => {
    isDone = true;
  });
  try {
    let ms = 0;
    do {
      const sentAt = monotonicMs();
      await probeHealth(admin, agent);
      ms = Math.max(ms, monotonicMs() - sentAt);
      await sleep(PROBE_INTERVAL_MS);
    } while (!isDone);
    return { ms, value: await working };
  } finally {
    agent.destroy();
    await working.catch(() => undefined);
  }
}

function probeHealth(admin: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`http://${admin}/healthz`, { agent }, (response) => {
      response.resume();
      response.once('end', resolve);
      response.once('error', reject);
    }).once('error', reject);
  });
}
