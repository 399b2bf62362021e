// What is done to the proxy while it serves: endpoints come and go, Services too, one is cut off, workers are ended.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { manifestFor, passingManifest } from './manifests.ts';
import { type Random, randomFrom } from './random.ts';
import { type ServiceName, services } from './services.ts';

export type DisturbancesOptions = {
  readonly seed: number;
  /** How long the load lasts: what is rare comes three times in a short one. */
  readonly ms: number;
  /** Of the manifests, which are watched. */
  readonly directory: string;
  readonly ports: Readonly<Record<ServiceName, number>>;
  readonly targets: Readonly<Record<ServiceName, number>>;
  /** For Services that come and go. */
  readonly passingPorts: readonly number[];
  suspend(): Promise<void>;
  resume(): Promise<void>;
  endWorker(random: Random): Promise<void>;
};

/** In which part of the load workers are ended. */
const endingShare = 0.35;
/** How long a connection may be under way to a listener that closes, on a busy machine. */
const recentMs = 5_000;

export class Disturbances {
  /** Clients leave at once. */
  readonly #emergency = new AbortController();
  readonly #options: DisturbancesOptions;
  readonly #last = new Map<ServiceName | 'all', number>();
  readonly #rounds = { coming: 0, passing: 0, suspensions: 0, workers: 0 };

  constructor(options: DisturbancesOptions) {
    this.#options = options;
  }

  get emergency(): AbortSignal {
    return this.#emergency.signal;
  }

  get rounds(): Readonly<Record<'coming' | 'passing' | 'suspensions' | 'workers', number>> {
    return this.#rounds;
  }

  isRecent(name: ServiceName): boolean {
    const last = Math.max(this.#last.get(name) ?? 0, this.#last.get('all') ?? 0);
    return last > 0 && performance.now() - last < recentMs;
  }

  throwOut(): void {
    this.#emergency.abort();
  }

  /** Until the signal; in the end everything is as at the beginning. */
  async run(signal: AbortSignal): Promise<void> {
    const { seed, ms, resume } = this.#options;
    const rarely = (most: number): number => Math.min(most, ms / 4);
    // Whatever leaks goes with the worker that leaked it: those of the end have to be old ones.
    const early = AbortSignal.any([signal, AbortSignal.timeout(ms * endingShare)]);
    const every = (ms: number, salt: number, act: (random: Random) => Promise<void> | void): Promise<void> =>
      repeat({ ms, signal, random: randomFrom(seed ^ salt) }, act);
    await Promise.all([
      every(3_000, 1, (random) => this.#come(random)),
      every(1_000, 2, (random) => this.#pass(random)),
      every(rarely(20_000), 3, () => this.#pause(signal)),
      repeat({ ms: rarely(60_000), signal: early, random: randomFrom(seed ^ 4) }, (random) => this.#endWorker(random)),
    ]);
    await resume();
    this.#write('coming', all('coming'));
    for (const index of this.#options.passingPorts.keys()) this.#removePassing(index);
  }

  /** Some of the endpoints, now and then none: then the listener is closed. */
  #come(random: Random): void {
    this.#rounds.coming++;
    const ready = random.chance(0.15) ? [] : all('coming').filter(() => random.chance(0.6));
    this.#last.set('coming', performance.now());
    this.#write('coming', ready);
  }

  #pass(random: Random): void {
    this.#rounds.passing++;
    const { passingPorts, targets, directory } = this.#options;
    const index = random.whole(0, passingPorts.length - 1);
    const port = passingPorts[index];
    if (port === undefined || random.chance(0.5)) this.#removePassing(index);
    else writeWhole(join(directory, passingFile(index)), passingManifest(index, { port, target: targets.calm }));
  }

  async #pause(signal: AbortSignal): Promise<void> {
    this.#rounds.suspensions++;
    this.#last.set('paused', performance.now());
    await this.#options.suspend();
    await rest(3_000, signal);
    this.#last.set('paused', performance.now());
    await this.#options.resume();
  }

  async #endWorker(random: Random): Promise<void> {
    this.#rounds.workers++;
    this.#last.set('all', performance.now());
    await this.#options.endWorker(random);
  }

  #write(name: ServiceName, ready: readonly number[]): void {
    const { directory, ports, targets } = this.#options;
    const text = manifestFor(name, { port: ports[name], target: targets[name], ready });
    writeWhole(join(directory, `${name}.yaml`), text);
  }

  #removePassing(index: number): void {
    rmSync(join(this.#options.directory, passingFile(index)), { force: true });
  }
}

/** Whoever watches the directory never sees half of it. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.new`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

export function all(name: ServiceName): number[] {
  return [...services[name].endpoints.keys()];
}

function passingFile(index: number): string {
  return `passing-${index}.yaml`;
}

type Repeating = { readonly ms: number; readonly signal: AbortSignal; readonly random: Random };

async function repeat({ ms, signal, random }: Repeating, act: (random: Random) => Promise<void> | void): Promise<void> {
  for (;;) {
    await rest(ms, signal);
    if (signal.aborted) return;
    await act(random);
  }
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {});
}
