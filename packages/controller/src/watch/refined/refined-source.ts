import type { Cutoff, CutoffOrigin, Problem, ServiceObject, SliceObject } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { objectKey } from '../../snapshot/sorted-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { KeptSlices } from './kept-slices.ts';
import { type Refinement, recalled, slicesFor } from './refinement.ts';
import { SliceWatch } from './slice-watch.ts';

export interface RefinedOptions {
  /** Whose Services are served. It is closed with this one. */
  readonly files: Source;
  /** Where their EndpointSlices are read; nothing else is. It is closed, too. */
  readonly api: Pick<KubeApi, 'request' | 'watch' | 'close'>;
  /** A file for what it said last; absent: it is forgotten at the end. */
  readonly keptIn?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Begins to ask the API server. Nobody waits for it: the files, and what was kept, serve at once. */
export async function openRefinedSource(options: RefinedOptions): Promise<RefinedSource> {
  const kept = options.keptIn === undefined ? undefined : new KeptSlices(options.keptIn, options.log);
  return new RefinedSource(options, { kept, last: (await kept?.read()) ?? new Map() });
}

interface Kept {
  readonly kept: KeptSlices | undefined;
  /** By `namespace/name` of the Service. */
  readonly last: ReadonlyMap<string, Refinement>;
}

/** The Services of the files, with the endpoints that the API server names for them. */
export class RefinedSource implements Source {
  readonly #options: RefinedOptions;
  readonly #kept: KeptSlices | undefined;
  /** What was known when a Service was last watched: by an earlier process, or before it left the files. */
  readonly #last: Map<string, Refinement>;
  /** By `namespace/name`. */
  readonly #watches = new Map<string, SliceWatch>();
  readonly #ending = new Set<Promise<void>>();
  readonly #listeners = new Set<(changedAt?: number) => void>();
  readonly #stop: () => void;
  #services: readonly ServiceObject[] = [];
  #snapshot: SourceSnapshot | undefined;
  #isClosed = false;

  constructor(options: RefinedOptions, { kept, last }: Kept) {
    this.#options = options;
    this.#kept = kept;
    this.#last = new Map(last);
    this.#stop = options.files.onChange((changedAt) => {
      this.#watchServices();
      this.#changed(changedAt);
    });
    this.#watchServices();
  }

  get kind(): Source['kind'] {
    return this.#options.files.kind;
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#options.files.synced(signal);
  }

  snapshot(): SourceSnapshot {
    this.#snapshot ??= this.#makeSnapshot();
    return this.#snapshot;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf(suspension: { readonly uid: string }): CutoffOrigin {
    return this.#options.files.originOf(suspension);
  }

  isDeleted(cutoff: Cutoff, signal: AbortSignal): Promise<boolean> {
    return this.#options.files.isDeleted(cutoff, signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    this.#listeners.clear();
    for (const key of [...this.#watches.keys()]) this.#end(key);
    await Promise.all(this.#ending);
    this.#options.api.close();
    await this.#kept?.close();
    await this.#options.files.close();
  }

  #watchServices(): void {
    const { services } = this.#options.files.snapshot();
    if (services === this.#services) return;
    this.#services = services;
    const wanted = new Map(services.filter(isServed).map((service) => [keyOf(service), service]));
    for (const key of [...this.#watches.keys()]) if (!wanted.has(key)) this.#end(key);
    for (const [key, service] of wanted) {
      const watch = this.#watches.get(key);
      if (watch === undefined) this.#watches.set(key, this.#begin(key, service));
      else watch.service = service;
    }
  }

  #begin(key: string, service: ServiceObject): SliceWatch {
    const { api, clock, log } = this.#options;
    const kept = this.#last.get(key) ?? { kind: 'none' };
    return new SliceWatch({ service, api, kept, clock, log, changed: () => this.#refined() });
  }

  #end(key: string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    this.#last.set(key, recalled(watch.refinement));
    const ending = watch.close();
    this.#ending.add(ending);
    void ending.then(() => this.#ending.delete(ending));
  }

  #refined(): void {
    if (this.#isClosed) return;
    this.#kept?.write(new Map([...this.#watches].map(([key, { refinement }]) => [key, refinement])));
    this.#changed(this.#options.clock.now());
  }

  #changed(changedAt: number | undefined): void {
    this.#snapshot = undefined;
    for (const listener of this.#listeners) listener(changedAt);
  }

  #makeSnapshot(): SourceSnapshot {
    const files = this.#options.files.snapshot();
    const problems = [...this.#watches.values()].flatMap((watch) => watch.problem() ?? ([] as Problem[]));
    return Object.freeze({
      ...files,
      slices: this.#slicesFor(files.slices),
      problems: Object.freeze([...files.problems, ...problems]),
    });
  }

  #slicesFor(files: readonly SliceObject[]): readonly SliceObject[] {
    const byService = Map.groupBy(files, ({ namespace, serviceName }) => `${namespace}/${serviceName}`);
    for (const [key, { refinement }] of this.#watches)
      byService.set(key, [...slicesFor(byService.get(key) ?? [], refinement)]);
    return Object.freeze([...byService.values()].flat().sort((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1)));
  }
}

/** Of others nobody asks for the endpoints. */
function isServed({ type }: ServiceObject): boolean {
  return type === 'LoadBalancer';
}

function keyOf({ namespace, name }: ServiceObject): string {
  return `${namespace}/${name}`;
}
