// Ten minutes of everything that can go wrong, at a load that leaves the machine room; and nothing may be left of it.

import { setTimeout } from 'node:timers/promises';
import { freePort } from '@weir/testkit';
import { settled } from '../l4/settled.ts';
import { machine } from '../report/machine.ts';
import type { SoakOptions } from './arguments.ts';
import { findingsFor } from './check.ts';
import { Disturbances } from './disturbances.ts';
import { type Endpoints, startEndpoints } from './endpoints.ts';
import { most, Population } from './population.ts';
import { ProgressLines } from './progress.ts';
import type { AtRest, Reading } from './reading.ts';
import { summaryFor } from './summary.ts';
import { startWeir, type Weir } from './weir-process.ts';

const passingServices = 8;
const longestWarmUpMs = 60_000;
/** Longer than any timeout of a Service here, and than TIME_WAIT of nothing: sockets of the process are gone at once. */
const drainMs = 60_000;
/** What is closed by the first may be freed by the next; and workers keep buffers until nobody has needed one for up to 10 s. */
const collections = 3;
const betweenCollectionsMs = 5_000;

/** Prints as it goes, and at the end a table; 1 when something is not as it has to be. */
export async function soak({ minutes, seed, workers }: SoakOptions, interruption: AbortSignal): Promise<number> {
  const ms = minutes * 60_000;
  console.log(
    `soak: ${minutes} minutes, seed ${seed}, ${workers} workers, at most ${most.open} connections and ${most.newPerSecond} new per second; ${machine()}`,
  );
  await using endpoints = await startEndpoints();
  await using weir = await startWeir(endpoints.ports, { workers });
  await weir.mallocBytes(); // so that it fails now, and not after the warm-up
  const passingPorts: number[] = [];
  while (passingPorts.length < passingServices) passingPorts.push(await freePort());
  const disturbances = new Disturbances({ ...weir, seed, ms, targets: endpoints.ports, passingPorts });
  const population = new Population({ seed, ports: weir.ports, disturbances });
  const died = new AbortController();
  void weir.process.exited.then(() => died.abort(new Error('the proxy ended')));
  const signal = AbortSignal.any([interruption, died.signal]);
  const parts = { weir, endpoints, population, disturbances };
  const { before, after } = await between(parts, { ms, signal });
  const reading = await readAll(parts, { before, after, workers });
  const findings = findingsFor(reading);
  console.log(summaryFor(reading, { minutes, born: population.born, rounds: disturbances.rounds }));
  if (findings.length === 0) {
    console.log('Nothing is left of it.');
    return 0;
  }
  for (const finding of findings) console.error(`soak: ${finding}`);
  if (reading.said.trim() !== '') console.error(reading.said.slice(-4_000));
  return 1;
}

/** At rest, under load for so long, and at rest again. */
async function between(
  { weir, population, disturbances }: Parts,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<{ before: AtRest; after: AtRest }> {
  using progress = new ProgressLines(weir, population, disturbances);
  const underLoad = { population, disturbances, signal };
  await load(Math.min(longestWarmUpMs, ms / 2), underLoad);
  const before = await atRest(weir);
  progress.say('warm; all have gone, and it begins');
  await load(ms, underLoad);
  progress.say('the load has ended');
  return { before, after: await atRest(weir) };
}

async function load(
  ms: number,
  {
    population,
    disturbances,
    signal,
  }: { readonly population: Population; readonly disturbances: Disturbances; readonly signal: AbortSignal },
): Promise<void> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  const leave = (): void => disturbances.throwOut();
  signal.addEventListener('abort', leave, { once: true });
  await Promise.all([population.run(over), disturbances.run(over)]);
  signal.removeEventListener('abort', leave);
  signal.throwIfAborted();
}

/** When all flows and connections are gone. What is then still there is a finding, so it does not wait for ever. */
async function atRest(weir: Weir): Promise<AtRest> {
  const until = performance.now() + drainMs;
  while ((await weir.view()).connections > 0 && performance.now() < until) await setTimeout(500);
  for (let time = 0; time < collections; time++) {
    await weir.collectGarbage();
    await setTimeout(betweenCollectionsMs);
  }
  const heapBytes = await weir.heapBytes();
  const malloc = await weir.mallocBytes();
  return { files: weir.openFiles(), residentKiB: weir.residentKinds(), malloc, heapBytes };
}

type Parts = {
  readonly weir: Weir;
  readonly endpoints: Endpoints;
  readonly population: Population;
  readonly disturbances: Disturbances;
};

async function readAll(
  { weir, endpoints, population, disturbances }: Parts,
  known: Pick<Reading, 'before' | 'after' | 'workers'>,
): Promise<Reading> {
  const ledger = await settled(() => weir.ledger());
  const view = await weir.view();
  const counts = await endpoints.counts();
  const exit = await weir.stop();
  return {
    ...known,
    ledger,
    view,
    exit,
    endpoints: counts,
    tallies: population.tallies,
    datagrams: population.datagrams,
    workersEnded: disturbances.rounds.workers,
    said: said(weir.process.output()),
  };
}

/** Its warnings and errors, without what it says when it is ready. */
function said(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^(Debugger|For help|ready )/.test(line))
    .join('\n');
}
