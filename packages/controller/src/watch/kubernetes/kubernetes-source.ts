import type { Cutoff, CutoffOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import { ApiError } from '../../kubernetes/api-error.ts';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { FailureLog } from './failure-log.ts';
import { KindCache } from './kind-cache.ts';
import { WATCHED_KINDS, type WatchedKind } from './kinds.ts';
import { reflect, type WatchObserver } from './reflector.ts';

export interface KubernetesSourceOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Logger;
  /** Each Service as it came, for whoever writes its status; undefined: it is gone. */
  readonly onService?: (key: string, raw: Json | undefined) => void;
  /** The same of TenantPolicies. */
  readonly onPolicy?: (key: string, raw: Json | undefined) => void;
  readonly observer?: WatchObserver;
}

/** Begins to watch; `synced` tells when everything is there. An API server that is away is waited for. */
export function openKubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  const source = new KubernetesSource(options);
  source.start();
  return source;
}

/** How many deletions are remembered: a cut-off is lifted within a moment of its Suspension's. */
const REMEMBERED_DELETIONS = 10_000;

/** For the confirmation of a deletion; it is asked for again. */
const CONFIRM_MS = 5_000;

export class KubernetesSource implements Source {
  readonly kind = 'kubernetes';
  readonly #options: KubernetesSourceOptions;
  readonly #closing = new AbortController();
  readonly #caches: { readonly [K in WatchedKind]: KindCache<K> };
  readonly #listeners = new Set<(changedAt?: number) => void>();
  readonly #deletedSuspensions = new Set<string>();
  #reflectors: readonly Promise<void>[] = [];
  #snapshot: SourceSnapshot | undefined;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    const cache = <K extends WatchedKind>(kind: K, raw?: (key: string, raw: Json | undefined) => void): KindCache<K> =>
      new KindCache(WATCHED_KINDS[kind], {
        clock: options.clock,
        changed: (changedAt) => this.#changed(changedAt),
        ...(raw && { raw }),
      });
    this.#caches = {
      Namespace: cache('Namespace'),
      Node: cache('Node'),
      Service: cache('Service', options.onService),
      EndpointSlice: cache('EndpointSlice'),
      Pod: cache('Pod'),
      TenantPolicy: cache('TenantPolicy', options.onPolicy),
      Suspension: cache('Suspension'),
    };
  }

  start(): void {
    const { api, clock, log, observer } = this.#options;
    const failures = new FailureLog(log, api.server);
    this.#reflectors = (Object.keys(this.#caches) as WatchedKind[]).map((kind) => {
      const { path, query, resource } = WATCHED_KINDS[kind];
      const cache: KindCache<WatchedKind> = this.#caches[kind];
      const target = {
        listing: () => cache.listing(),
        listed: () => cache.listed(),
        put: (object: Json) => cache.put(object),
        deleted: (object: Json) => {
          if (kind === 'Suspension') this.#rememberDeletion(object);
          cache.deleted(object);
        },
        failed: (error: ApiError | undefined) => {
          failures.note(resource, error);
          cache.failed(error);
        },
      };
      return reflect({ api, path, query, target, clock, log, ...(observer && { observer }) }, this.#closing.signal);
    });
  }

  get isSynced(): boolean {
    return Object.values(this.#caches).every((cache) => cache.isSynced);
  }

  synced(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (this.isSynced) resolve();
    };
    const stop = this.onChange(check);
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    check();
    return promise.finally(() => {
      stop();
      signal.removeEventListener('abort', abort);
    });
  }

  snapshot(): SourceSnapshot {
    this.#snapshot ??= Object.freeze({
      namespaces: this.#caches.Namespace.list(),
      nodes: this.#caches.Node.list(),
      services: this.#caches.Service.list(),
      slices: this.#caches.EndpointSlice.list(),
      pods: this.#caches.Pod.list(),
      policies: this.#caches.TenantPolicy.list(),
      suspensions: this.#caches.Suspension.list(),
      problems: Object.freeze(Object.values(this.#caches).flatMap((cache) => cache.problems())),
    });
    return this.#snapshot;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf(): CutoffOrigin {
    return { kind: 'kubernetes' };
  }

  /** Seen deleted, or, asked for by name, the API server itself says that it does not exist (any more). */
  async isDeleted({ uid, name, origin }: Cutoff, signal: AbortSignal): Promise<boolean> {
    if (origin.kind !== 'kubernetes') return false;
    if (this.#deletedSuspensions.has(uid)) return true;
    try {
      const path = `${WATCHED_KINDS.Suspension.path}/${encodeURIComponent(name)}`;
      const found = await this.#options.api.request({ method: 'GET', path, signal, timeoutMs: CONFIRM_MS });
      return (found.metadata as { uid?: string } | undefined)?.uid !== uid;
    } catch (error) {
      // Without the name of an object it is the kind that is missing: that says nothing of this one.
      return error instanceof ApiError && error.code === 'NOT_FOUND' && error.missing === name;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#listeners.clear();
    await Promise.all(this.#reflectors);
  }

  #changed(changedAt: number | undefined): void {
    this.#snapshot = undefined;
    for (const listener of this.#listeners) listener(changedAt);
  }

  #rememberDeletion(object: Json): void {
    const { uid } = (object.metadata ?? {}) as { uid?: string };
    if (uid === undefined) return;
    this.#deletedSuspensions.add(uid);
    const [oldest] = this.#deletedSuspensions;
    if (this.#deletedSuspensions.size > REMEMBERED_DELETIONS && oldest !== undefined)
      this.#deletedSuspensions.delete(oldest);
  }
}
