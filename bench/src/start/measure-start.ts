import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Answering } from '../control/calls.ts';
import { peakKiB } from '../control/own-memory.ts';
import { sameTime } from '../control/same-time.ts';
import { cpuTimeOf } from '../measure/cpu-time.ts';
import { descriptorLimit } from '../measure/descriptors.ts';
import { longestWait } from './longest-wait.ts';
import type { PublisherCalls } from './publisher-process.ts';
import type { StartLayout } from './start-cluster.ts';
import type { ScrapeReading, StartReading, StartRow } from './start-result.ts';
import { type StartedProxy, startProxy } from './started-proxy.ts';

export const workers = 2;

export type MeasureStartOptions = {
  readonly redis: string;
  /** The proxy's. */
  readonly program: string;
  readonly services: number;
  readonly here: number;
  readonly rounds: number;
  readonly profile?: string | undefined;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
};

const publisher = new URL('publisher-process.ts', import.meta.url);
const forEverythingElse = 600;
const scrapes = 5;
/** What a start has left behind is over by then: the first heartbeats, and garbage. */
const restMs = 5_000;

/** Starts of a proxy whose node serves so many of the Services, then scrapes of the last of them. Throws when one is not valid. */
export async function measureStart(options: MeasureStartOptions): Promise<StartRow> {
  const { redis, program, services, rounds, profile, signal, say } = options;
  const here = mostHere(options.here);
  const node = { name: 'start-1', address: `127.93.${2 + (process.pid % 250)}.1` };
  const fleet = `bench-${randomUUID().slice(0, 8)}`;
  const { entries, listeners } = await publish(redis, fleet, { services, here, node });
  const starts: StartReading[] = [];
  for (let round = 1; round <= rounds; round++) {
    signal.throwIfAborted();
    await using proxy = await startProxy({ program, redis, fleet, node: node.name, workers, profile });
    const cpu = cpuTimeOf(proxy.pid);
    starts.push({
      servingMs: proxy.servingMs,
      cpuMs: cpu.userMs + cpu.systemMs,
      peakKiB: peakKiB(proxy.pid),
    });
    await prove(proxy, listeners);
    if (round < rounds) continue;
    say(
      `${listeners} Services here: served after ${starts.map(({ servingMs }) => servingMs.toFixed(0)).join(', ')} ms`,
    );
    await pause(restMs);
    const rest = await longestWait(proxy.admin, () => pause(restMs));
    const read: ScrapeReading[] = [];
    for (let nth = 0; nth < scrapes; nth++) read.push(await scrape(proxy.admin));
    return { entries, here: listeners, wanted: options.here, starts, scrapes: read, restMs: rest.ms };
  }
  throw new Error('a start needs a round');
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
