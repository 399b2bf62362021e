import { setTimeout } from 'node:timers/promises';
import { freePort } from '@weir/testkit';
import { describeMachine } from '../report/run-metadata.ts';
import { readUntilStable } from '../subjects/weir-console.ts';
import { findingsFor } from './checks.ts';
import { type Endpoints, startEndpoints } from './endpoints.ts';
import { FaultInjector } from './fault-injector.ts';
import { LOAD_LIMITS, LoadGenerator } from './load-generator.ts';
import type { SoakOptions } from './options.ts';
import type { ProxyView } from './proxy-view.ts';
import { formatSoakResult, type ResourceUsage, type SoakResult } from './soak-result.ts';
import { type StandaloneWeir, startStandaloneWeir } from './weir-process.ts';

// Runs clients, endpoints and faults against `weir standalone`. Compares the resources of `weir standalone` before and after the load.
const TRANSIENT_SERVICES = 8;
const MAX_WARM_UP_MS = 60_000;
/** Maximum wait for the end of all connections. Longer than every timeout of the Services in `SERVICES`. */
const DRAIN_TIMEOUT_MS = 60_000;
/**
 * Number of garbage collections before a measurement. More than one, because a later collection may free the objects that an earlier
 * collection closed, and because workers keep unused buffers for up to 10 s.
 */
const GARBAGE_COLLECTIONS = 3;
const GARBAGE_COLLECTION_INTERVAL_MS = 5_000;

/** Runs a soak and prints progress and a table. Returns the exit code: 1 if there is a finding. */
export async function soak({ minutes, seed, workers }: SoakOptions, interruption: AbortSignal): Promise<number> {
  const durationMs = minutes * 60_000;
  console.log(
    `soak: ${minutes} minutes, seed ${seed}, ${workers} workers, at most ${LOAD_LIMITS.open} open connections and ${LOAD_LIMITS.newPerSecond} new connections per second; ${describeMachine()}`,
  );
  await using endpoints = await startEndpoints();
  await using weir = await startStandaloneWeir(endpoints.ports, { workers });
  await weir.mallocBytes(); // throws before the load if malloc_info is not available
  const transientPorts: number[] = [];
  while (transientPorts.length < TRANSIENT_SERVICES) transientPorts.push(await freePort());
  const faultInjector = new FaultInjector({
    ...weir,
    seed,
    durationMs,
    endpointPorts: endpoints.ports,
    transientPorts,
  });
  const loadGenerator = new LoadGenerator({ seed, ports: weir.ports, faultInjector });
  const died = new AbortController();
  void weir.process.exited.then(() => died.abort(new Error('the proxy ended')));
  const signal = AbortSignal.any([interruption, died.signal]);
  const parts = { weir, endpoints, loadGenerator, faultInjector };
  const { before, after } = await measureBeforeAndAfter(parts, { ms: durationMs, signal });
  const reading = await readResult(parts, { before, after, workers });
  const findings = findingsFor(reading);
  console.log(
    formatSoakResult(reading, {
      minutes,
      startedClients: loadGenerator.startedClients,
      faultCounts: faultInjector.faultCounts,
    }),
  );
  if (findings.length === 0) {
    console.log('No leaks and no accounting errors.');
    return 0;
  }
  for (const finding of findings) console.error(`soak: ${finding}`);
  if (reading.proxyLog.trim() !== '') console.error(reading.proxyLog.slice(-4_000));
  return 1;
}

async function measureBeforeAndAfter(
  { weir, loadGenerator, faultInjector }: SoakParts,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<{ before: ResourceUsage; after: ResourceUsage }> {
  using progress = new ProgressReporter(weir, loadGenerator, faultInjector);
  const underLoad = { loadGenerator, faultInjector, signal };
  await runLoad(Math.min(MAX_WARM_UP_MS, ms / 2), underLoad);
  const before = await measureAtRest(weir);
  progress.log('the warm-up has ended; starting the load');
  await runLoad(ms, underLoad);
  progress.log('the load has ended');
  return { before, after: await measureAtRest(weir) };
}

async function runLoad(
  ms: number,
  {
    loadGenerator,
    faultInjector,
    signal,
  }: { readonly loadGenerator: LoadGenerator; readonly faultInjector: FaultInjector; readonly signal: AbortSignal },
): Promise<void> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  const leave = (): void => faultInjector.abortClients();
  signal.addEventListener('abort', leave, { once: true });
  await Promise.all([loadGenerator.run(over), faultInjector.run(over)]);
  signal.removeEventListener('abort', leave);
  signal.throwIfAborted();
}

/** Waits until all connections have ended, at most `DRAIN_TIMEOUT_MS`, and reads the resources. Remaining connections are a finding. */
async function measureAtRest(weir: StandaloneWeir): Promise<ResourceUsage> {
  const until = performance.now() + DRAIN_TIMEOUT_MS;
  while ((await weir.view()).connections > 0 && performance.now() < until) await setTimeout(500);
  for (let time = 0; time < GARBAGE_COLLECTIONS; time++) {
    await weir.collectGarbage();
    await setTimeout(GARBAGE_COLLECTION_INTERVAL_MS);
  }
  const heapBytes = await weir.heapBytes();
  const malloc = await weir.mallocBytes();
  return { descriptors: weir.descriptorCounts(), residentKiB: weir.residentKiBByKind(), malloc, heapBytes };
}

type SoakParts = {
  readonly weir: StandaloneWeir;
  readonly endpoints: Endpoints;
  readonly loadGenerator: LoadGenerator;
  readonly faultInjector: FaultInjector;
};

async function readResult(
  { weir, endpoints, loadGenerator, faultInjector }: SoakParts,
  known: Pick<SoakResult, 'before' | 'after' | 'workers'>,
): Promise<SoakResult> {
  const ledger = await readUntilStable(() => weir.ledger());
  const view = await weir.view();
  const counts = await endpoints.totals();
  const exit = await weir.stop();
  return {
    ...known,
    ledger,
    view,
    exit,
    endpointTotals: counts,
    clientTotals: loadGenerator.clientTotals,
    datagramTotals: loadGenerator.datagramTotals,
    endedWorkers: faultInjector.faultCounts.workers,
    proxyLog: warningsIn(weir.process.output()),
  };
}

/** Returns the warnings and errors of the proxy, without its start messages. */
function warningsIn(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^(Debugger|For help|ready )/.test(line))
    .join('\n');
}

const PROGRESS_INTERVAL_MS = 10_000;

export class ProgressReporter implements Disposable {
  readonly #weir: StandaloneWeir;
  readonly #loadGenerator: LoadGenerator;
  readonly #faultInjector: FaultInjector;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(weir: StandaloneWeir, loadGenerator: LoadGenerator, faultInjector: FaultInjector) {
    this.#weir = weir;
    this.#loadGenerator = loadGenerator;
    this.#faultInjector = faultInjector;
    this.#timer = setInterval(() => {
      this.#formatLine().then(
        (line) => this.log(line),
        (error: Error) => this.log(`failed to read the proxy: ${error.message}`),
      );
    }, PROGRESS_INTERVAL_MS);
  }

  log(text: string): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000);
    console.log(`${String(seconds).padStart(4)} s  ${text}`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #formatLine(): Promise<string> {
    const view = await this.#weir.view();
    const descriptors = Object.values(this.#weir.descriptorCounts()).reduce((sum, each) => sum + each, 0);
    const { workers, suspensions } = this.#faultInjector.faultCounts;
    return [
      `${view.connections} active (${this.#loadGenerator.openClients} clients)`,
      `${this.#loadGenerator.startedClients} started`,
      formatOutcomes(view),
      `${(this.#weir.residentKiB() / 1024).toFixed(0)} MiB`,
      `${descriptors} descriptors`,
      `${workers} workers crashed, ${suspensions} suspensions`,
    ].join(', ');
  }
}

function formatOutcomes({ services }: ProxyView): string {
  const sums: Record<string, number> = {};
  for (const { outcomes } of services) {
    for (const [outcome, count] of Object.entries(outcomes)) sums[outcome] = (sums[outcome] ?? 0) + count;
  }
  return Object.entries(sums)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(' ');
}
