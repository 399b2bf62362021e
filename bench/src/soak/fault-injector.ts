// Injects faults while the proxy is under load: changes endpoints and Services, suspends a Service, crashes workers.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Random, seededRandom } from './random.ts';
import { SERVICES, type ServiceName, soakServiceManifest, transientServiceManifest } from './services.ts';

export type FaultInjectorOptions = {
  readonly seed: number;
  /** Duration of the load. Rare faults happen at least every quarter of this time, so that a short load has rare faults too. */
  readonly durationMs: number;
  /** The directory of manifests that `weir standalone` watches. */
  readonly directory: string;
  readonly ports: Readonly<Record<ServiceName, number>>;
  readonly endpointPorts: Readonly<Record<ServiceName, number>>;
  /** Ports of Services that are created and deleted. */
  readonly transientPorts: readonly number[];
  suspend(): Promise<void>;
  resume(): Promise<void>;
  endWorker(random: Random): Promise<void>;
};

/** Share of the load, from its start, in which workers are crashed. */
const WORKER_FAULTS_SHARE = 0.35;
/** Time after a fault in which a reset may be its consequence: the connection may have waited in the queue of a closing listener. */
const RECENT_FAULT_MS = 5_000;

export class FaultInjector {
  /** Its signal aborts all clients. */
  readonly #clientAbort = new AbortController();
  readonly #options: FaultInjectorOptions;
  readonly #lastFaultAt = new Map<ServiceName | 'all', number>();
  readonly #faultCounts = { changingEndpoints: 0, transientServices: 0, suspensions: 0, workers: 0 };

  constructor(options: FaultInjectorOptions) {
    this.#options = options;
  }

  get clientAbortSignal(): AbortSignal {
    return this.#clientAbort.signal;
  }

  get faultCounts(): Readonly<Record<'changingEndpoints' | 'transientServices' | 'suspensions' | 'workers', number>> {
    return this.#faultCounts;
  }

  isRecentlyDisturbed(name: ServiceName): boolean {
    const last = Math.max(this.#lastFaultAt.get(name) ?? 0, this.#lastFaultAt.get('all') ?? 0);
    return last > 0 && performance.now() - last < RECENT_FAULT_MS;
  }

  abortClients(): void {
    this.#clientAbort.abort();
  }

  /** Injects faults until `signal` is aborted. Then restores all endpoints and Services. */
  async run(signal: AbortSignal): Promise<void> {
    const { seed, durationMs, resume } = this.#options;
    const rarely = (maxMs: number): number => Math.min(maxMs, durationMs / 4);
    // a crash frees the memory that a worker has leaked, so workers are crashed only early in the load
    const early = AbortSignal.any([signal, AbortSignal.timeout(durationMs * WORKER_FAULTS_SHARE)]);
    const every = (ms: number, salt: number, act: (random: Random) => Promise<void> | void): Promise<void> =>
      repeat({ ms, signal, random: seededRandom(seed ^ salt) }, act);
    await Promise.all([
      every(3_000, 1, (random) => this.#changeEndpoints(random)),
      every(1_000, 2, (random) => this.#changeTransientService(random)),
      every(rarely(20_000), 3, () => this.#suspendService(signal)),
      repeat({ ms: rarely(60_000), signal: early, random: seededRandom(seed ^ 4) }, (random) =>
        this.#endWorker(random),
      ),
    ]);
    await resume();
    this.#writeManifest('changing-endpoints', endpointIndexes('changing-endpoints'));
    for (const index of this.#options.transientPorts.keys()) this.#removeTransientService(index);
  }

  /** Makes a random selection of the endpoints ready. Sometimes no endpoint is ready, which closes the listener. */
  #changeEndpoints(random: Random): void {
    this.#faultCounts.changingEndpoints++;
    const ready = random.chance(0.15) ? [] : endpointIndexes('changing-endpoints').filter(() => random.chance(0.6));
    this.#lastFaultAt.set('changing-endpoints', performance.now());
    this.#writeManifest('changing-endpoints', ready);
  }

  #changeTransientService(random: Random): void {
    this.#faultCounts.transientServices++;
    const { transientPorts, endpointPorts, directory } = this.#options;
    const index = random.integer(0, transientPorts.length - 1);
    const port = transientPorts[index];
    if (port === undefined || random.chance(0.5)) this.#removeTransientService(index);
    else
      writeAtomically(
        join(directory, transientServiceFile(index)),
        transientServiceManifest(index, { port, target: endpointPorts.orderly }),
      );
  }

  async #suspendService(signal: AbortSignal): Promise<void> {
    this.#faultCounts.suspensions++;
    this.#lastFaultAt.set('suspended', performance.now());
    await this.#options.suspend();
    await sleep(3_000, signal);
    this.#lastFaultAt.set('suspended', performance.now());
    await this.#options.resume();
  }

  async #endWorker(random: Random): Promise<void> {
    this.#faultCounts.workers++;
    this.#lastFaultAt.set('all', performance.now());
    await this.#options.endWorker(random);
  }

  #writeManifest(name: ServiceName, ready: readonly number[]): void {
    const { directory, ports, endpointPorts } = this.#options;
    const text = soakServiceManifest(name, { port: ports[name], target: endpointPorts[name], ready });
    writeAtomically(join(directory, `${name}.yaml`), text);
  }

  #removeTransientService(index: number): void {
    rmSync(join(this.#options.directory, transientServiceFile(index)), { force: true });
  }
}

/** Writes a file under another name and renames it, so that the watcher of the directory never reads a partial file. */
export function writeAtomically(path: string, text: string): void {
  const draft = `${path}.new`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

export function endpointIndexes(name: ServiceName): number[] {
  return [...SERVICES[name].endpoints.keys()];
}

function transientServiceFile(index: number): string {
  return `transient-${index}.yaml`;
}

type RepeatOptions = { readonly ms: number; readonly signal: AbortSignal; readonly random: Random };

async function repeat(
  { ms, signal, random }: RepeatOptions,
  act: (random: Random) => Promise<void> | void,
): Promise<void> {
  for (;;) {
    await sleep(ms, signal);
    if (signal.aborted) return;
    await act(random);
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {});
}
