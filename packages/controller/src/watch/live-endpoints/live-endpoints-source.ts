import type { Problem, ServiceObject, SliceObject, Suspension, SuspensionOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { objectKey } from '../../snapshot/sorted-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { SnapshotCache } from '../source.ts';
import { SliceCacheFile } from './slice-cache-file.ts';
import { asCached, effectiveSlices, type LiveSlices, SliceWatch } from './slice-watch.ts';

export interface LiveEndpointsOptions {
  /** The source of the Services. Closing the `LiveEndpointsSource` closes this source too. */
  readonly files: Source;
  /** The client of the API server from which the EndpointSlices are read. Closing the `LiveEndpointsSource` closes this client too. */
  readonly api: Pick<KubeApi, 'request' | 'watch' | 'close'>;
  /** A file that keeps the slices over a restart. Without this file, a restart loses the slices. */
  readonly cachePath?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Begins to watch slices without waiting for the API server. Until the API server answers, endpoints come from the files and the cache. */
export async function openLiveEndpointsSource(options: LiveEndpointsOptions): Promise<LiveEndpointsSource> {
  const cacheFile = options.cachePath === undefined ? undefined : new SliceCacheFile(options.cachePath, options.log);
  return new LiveEndpointsSource(options, { cacheFile, cachedSlices: (await cacheFile?.read()) ?? new Map() });
}

interface InitialState {
  readonly cacheFile: SliceCacheFile | undefined;
  /** The cached slices by `namespace/name` of the Service. */
  readonly cachedSlices: ReadonlyMap<string, LiveSlices>;
}

/** Combines the Services in files with the endpoints of these Services at an API server. */
export class LiveEndpointsSource implements Source {
  readonly #options: LiveEndpointsOptions;
  readonly #cacheFile: SliceCacheFile | undefined;
  /**
   * The last known slices of Services that are not watched. The slices come from an earlier process, or from the time before the
   * Service left the files.
   */
  readonly #cachedSlices: Map<string, LiveSlices>;
  /** The watches by `namespace/name` of the Service. */
  readonly #watches = new Map<string, SliceWatch>();
  readonly #closingWatches = new Set<Promise<void>>();
  readonly #unsubscribe: () => void;
  #services: readonly ServiceObject[] = [];
  readonly #snapshots = new SnapshotCache(() => this.#buildSnapshot());
  #isClosed = false;

  constructor(options: LiveEndpointsOptions, { cacheFile, cachedSlices }: InitialState) {
    this.#options = options;
    this.#cacheFile = cacheFile;
    this.#cachedSlices = new Map(cachedSlices);
    this.#unsubscribe = options.files.onChange((changedAt) => {
      this.#watchServices();
      this.#snapshots.invalidate(changedAt);
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
    return this.#snapshots.get();
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    return this.#snapshots.onChange(listener);
  }

  originOf(suspension: { readonly uid: string }): SuspensionOrigin {
    return this.#options.files.originOf(suspension);
  }

  isDeleted(suspension: Suspension, signal: AbortSignal): Promise<boolean> {
    return this.#options.files.isDeleted(suspension, signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#snapshots.close();
    for (const key of [...this.#watches.keys()]) this.#closeWatch(key);
    await Promise.all(this.#closingWatches);
    this.#options.api.close();
    await this.#cacheFile?.close();
    await this.#options.files.close();
  }

  #watchServices(): void {
    const { services } = this.#options.files.snapshot();
    if (services === this.#services) return;
    this.#services = services;
    const wanted = new Map(services.filter(isLoadBalancer).map((service) => [keyOf(service), service]));
    for (const key of [...this.#watches.keys()]) if (!wanted.has(key)) this.#closeWatch(key);
    for (const [key, service] of wanted) {
      const watch = this.#watches.get(key);
      if (watch === undefined) this.#watches.set(key, this.#startWatch(key, service));
      else watch.service = service;
    }
  }

  #startWatch(key: string, service: ServiceObject): SliceWatch {
    const { api, clock, log } = this.#options;
    const initial = this.#cachedSlices.get(key) ?? { kind: 'none' };
    return new SliceWatch({ service, api, initial, clock, log, onChange: () => this.#onSlicesChanged() });
  }

  #closeWatch(key: string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    this.#cachedSlices.set(key, asCached(watch.liveSlices));
    const ending = watch.close();
    this.#closingWatches.add(ending);
    void ending.then(() => this.#closingWatches.delete(ending));
  }

  #onSlicesChanged(): void {
    if (this.#isClosed) return;
    this.#cacheFile?.write(new Map([...this.#watches].map(([key, { liveSlices }]) => [key, liveSlices])));
    this.#snapshots.invalidate(this.#options.clock.now());
  }

  #buildSnapshot(): SourceSnapshot {
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

/** Whether Weir needs the endpoints of the Service. */
function isLoadBalancer({ type }: ServiceObject): boolean {
  return type === 'LoadBalancer';
}

function keyOf({ namespace, name }: ServiceObject): string {
  return `${namespace}/${name}`;
}
