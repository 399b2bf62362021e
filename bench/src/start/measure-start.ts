import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { cpuTimeOf, descriptorLimit, peakResidentKiB, runQueueMsOf } from '../measure/proc-stats.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { type ServingProxy, startProxyUntilServing } from '../processes/weir-proxy.ts';
import type { PublisherRpc } from './publisher-process.ts';
import type { StartLayout } from './start-cluster.ts';
import type { ProxyStartReading, ProxyStartRow, ScrapeReading } from './start-result.ts';

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

export type MeasureStartsOptions = Omit<PublishedFleetOptions, 'here'> & {
  readonly here: readonly number[];
  readonly rounds: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
};

/**
 * Starts of a proxy for each share of the Services, one of each in every round: what else the machine does for some seconds then befalls
 * all of them. A share whose start is not valid is told, and not started again.
 */
export async function measureStarts(
  options: MeasureStartsOptions,
): Promise<{ rows: ProxyStartRow[]; failures: string[] }> {
  const { here: wanted, rounds, signal, say, ...common } = options;
  const shares = new Map<number, PublishedFleet>();
  const rows: ProxyStartRow[] = [];
  const failures: string[] = [];
  const attempt = async (here: number, work: () => Promise<void>): Promise<void> => {
    if (signal.aborted) return;
    try {
      await work();
    } catch (error) {
      shares.delete(here);
      failures.push(`${here} Services here: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  for (const here of wanted) {
    await attempt(here, async () => void shares.set(here, await PublishedFleet.publish({ ...common, here })));
  }
  for (let round = 1; round < rounds; round++) {
    for (const [here, share] of shares) await attempt(here, () => share.startProxy());
    say(`${round} of ${rounds} starts of each`);
  }
  for (const [here, share] of shares) {
    await attempt(here, async () => {
      const row = await share.startAndScrapeProxy();
      rows.push(row);
      say(
        `${row.here} Services here: served after ${row.starts.map(({ servingMs }) => servingMs.toFixed(0)).join(', ')} ms`,
      );
    });
  }
  return { rows, failures };
}

const PROBE_INTERVAL_MS = 5;

/**
 * How long the main thread of a process keeps somebody waiting at most, while `work` goes on: what a short question costs, asked again
 * and again on a connection of its own.
 */
export async function measureMaxResponseTime<T>(
  admin: string,
  work: () => Promise<T>,
): Promise<{ readonly ms: number; readonly value: T }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  try {
    let ms = 0;
    do {
      const askedAt = monotonicMs();
      await probeHealth(admin, agent);
      ms = Math.max(ms, monotonicMs() - askedAt);
      await pause(PROBE_INTERVAL_MS);
    } while (!isOver);
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
