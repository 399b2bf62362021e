import type { Problem, ServiceObject, SliceObject, Suspension, SuspensionOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { objectKey } from '../../snapshot/sorted-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { SliceCacheFile } from './slice-cache-file.ts';
import { asUnread, effectiveSlices, type LiveSlices, SliceWatch } from './slice-watch.ts';

export interface LiveEndpointsOptions {
  /** Whose Services are served. It is closed with this one. */
  readonly files: Source;
  /** Where their EndpointSlices are read; nothing else is. It is closed, too. */
  readonly api: Pick<KubeApi, 'request' | 'watch' | 'close'>;
  /** A file for what it said last; absent: it is forgotten at the end. */
  readonly cachePath?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Begins to ask the API server. Nobody waits for it: the files, and what was kept, serve at once. */
export async function openLiveEndpointsSource(options: LiveEndpointsOptions): Promise<LiveEndpointsSource> {
  const cacheFile = options.cachePath === undefined ? undefined : new SliceCacheFile(options.cachePath, options.log);
  return new LiveEndpointsSource(options, { cacheFile, lastSlices: (await cacheFile?.read()) ?? new Map() });
}

interface InitialState {
  readonly cacheFile: SliceCacheFile | undefined;
  /** By `namespace/name` of the Service. */
  readonly lastSlices: ReadonlyMap<string, LiveSlices>;
}

/** The Services of the files, with the endpoints that the API server names for them. */
export class LiveEndpointsSource implements Source {
  readonly #options: LiveEndpointsOptions;
  readonly #cacheFile: SliceCacheFile | undefined;
  /** What was known when a Service was last watched: by an earlier process, or before it left the files. */
  readonly #lastSlices: Map<string, LiveSlices>;
  /** By `namespace/name`. */
  readonly #watches = new Map<string, SliceWatch>();
  readonly #ending = new Set<Promise<void>>();
  readonly #listeners = new Set<(changedAt?: number) => void>();
  readonly #unsubscribe: () => void;
  #services: readonly ServiceObject[] = [];
  #snapshot: SourceSnapshot | undefined;
  #isClosed = false;

  constructor(options: LiveEndpointsOptions, { cacheFile, lastSlices }: InitialState) {
    this.#options = options;
    this.#cacheFile = cacheFile;
    this.#lastSlices = new Map(lastSlices);
    this.#unsubscribe = options.files.onChange((changedAt) => {
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

  originOf(suspension: { readonly uid: string }): SuspensionOrigin {
    return this.#options.files.originOf(suspension);
  }

  isDeleted(cutoff: Suspension, signal: AbortSignal): Promise<boolean> {
    return this.#options.files.isDeleted(cutoff, signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#listeners.clear();
    for (const key of [...this.#watches.keys()]) this.#endWatch(key);
    await Promise.all(this.#ending);
    this.#options.api.close();
    await this.#cacheFile?.close();
    await this.#options.files.close();
  }

  #watchServices(): void {
    const { services } = this.#options.files.snapshot();
    if (services === this.#services) return;
    this.#services = services;
    const wanted = new Map(services.filter(isLoadBalancer).map((service) => [keyOf(service), service]));
    for (const key of [...this.#watches.keys()]) if (!wanted.has(key)) this.#endWatch(key);
    for (const [key, service] of wanted) {
      const watch = this.#watches.get(key);
      if (watch === undefined) this.#watches.set(key, this.#startWatch(key, service));
      else watch.service = service;
    }
  }

  #startWatch(key: string, service: ServiceObject): SliceWatch {
    const { api, clock, log } = this.#options;
    const initial = this.#lastSlices.get(key) ?? { kind: 'none' };
    return new SliceWatch({ service, api, initial, clock, log, changed: () => this.#onSlicesChanged() });
  }

  #endWatch(key: string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    this.#lastSlices.set(key, asUnread(watch.liveSlices));
    const ending = watch.close();
    this.#ending.add(ending);
    void ending.then(() => this.#ending.delete(ending));
  }

  #onSlicesChanged(): void {
    if (this.#isClosed) return;
    this.#cacheFile?.write(new Map([...this.#watches].map(([key, { liveSlices }]) => [key, liveSlices])));
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
    for (const [key, { liveSlices }] of this.#watches)
      byService.set(key, [...effectiveSlices(byService.get(key) ?? [], liveSlices)]);
    return Object.freeze([...byService.values()].flat().sort((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1)));
  }
}

/** Of others nobody asks for the endpoints. */
function isLoadBalancer({ type }: ServiceObject): boolean {
  return type === 'LoadBalancer';
}

function keyOf({ namespace, name }: ServiceObject): string {
  return `${namespace}/${name}`;
}
