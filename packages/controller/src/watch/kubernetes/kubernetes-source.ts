import type { Cutoff, CutoffOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import { ApiError } from '../../kubernetes/api-error.ts';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import { REPLACEABLE_KINDS, type ReplaceableKind } from '../../snapshot/stand-ins.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { FailureLog } from './failure-log.ts';
import { KindCache } from './kind-cache.ts';
import { WATCHED_KINDS, type WatchedKind } from './kinds.ts';
import { NewestVersion } from './newest-version.ts';
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
  readonly #newest = new Map<WatchedKind, NewestVersion>();
  #reflectors: readonly Promise<void>[] = [];
  /** Ends the reflectors, so that others may begin. */
  #watching = new AbortController();
  readonly #failures: FailureLog;
  #snapshot: SourceSnapshot | undefined;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    this.#failures = new FailureLog(options.log, options.api.server);
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
      ServiceCIDR: cache('ServiceCIDR'),
      TenantPolicy: cache('TenantPolicy', options.onPolicy),
      Suspension: cache('Suspension'),
    };
  }

  start(): void {
    const { api, clock, log, observer } = this.#options;
    this.#watching = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, this.#watching.signal]);
    this.#reflectors = (Object.keys(this.#caches) as WatchedKind[]).map((kind) => {
      const { path, query, resource, isNew } = WATCHED_KINDS[kind];
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
          const isUnserved = isNew === true && error?.code === 'NOT_FOUND';
          this.#failures.note(resource, isUnserved ? undefined : error);
          cache.failed(error);
        },
      };
      const newest = this.#newest.get(kind) ?? new NewestVersion();
      this.#newest.set(kind, newest);
      return reflect({ api, path, query, target, clock, log, newest, ...(observer && { observer }) }, signal);
    });
  }

  get isSynced(): boolean {
    return Object.values(this.#caches).every((cache) => cache.isSynced);
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#until(() => this.isSynced, signal);
  }

  /**
   * A watch may be behind, or dead without a word for a while, and does not know it: a list asks for what is true now. Reads everything
   * once more, also what is being read for the first time: a list that began before may be older.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    this.#watching.abort();
    await Promise.all(this.#reflectors);
    // Not before: what had been answered already is still taken.
    for (const cache of Object.values(this.#caches)) cache.expire();
    if (!this.#closing.signal.aborted) this.start();
    await this.#until(() => Object.values(this.#caches).every((cache) => cache.isCurrent), signal);
  }

  snapshot(): SourceSnapshot {
    this.#snapshot ??= Object.freeze({
      namespaces: this.#caches.Namespace.list(),
      nodes: this.#caches.Node.list(),
      services: this.#caches.Service.list(),
      slices: this.#caches.EndpointSlice.list(),
      pods: this.#caches.Pod.list(),
      serviceCidrs: this.#caches.ServiceCIDR.list(),
      policies: this.#caches.TenantPolicy.list(),
      suspensions: this.#caches.Suspension.list(),
      problems: Object.freeze(Object.values(this.#caches).flatMap((cache) => cache.problems())),
      unread: this.#unread(),
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

  #until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (isSo()) resolve();
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

  #unread(): ReadonlySet<ReplaceableKind> {
    return new Set(REPLACEABLE_KINDS.filter((kind) => this.#caches[kind].isUnread));
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
