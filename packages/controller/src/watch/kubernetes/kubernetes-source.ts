import type { Suspension, SuspensionOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import { KubeApiError } from '../../kubernetes/kube-api-error.ts';
import { FALLBACK_KINDS, type FallbackKind } from '../../snapshot/fallback-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { createKindWatch, type KindWatch } from './kind-cache.ts';
import { reflect, type WatchObserver } from './reflector.ts';
import { type ReadableSecrets, SecretWatches } from './secret-watches.ts';
import { kindSubject, WatchFailureLog } from './watch-failures.ts';
import { type AlwaysWatchedKind, WATCHED_KINDS } from './watched-kinds.ts';

export interface KubernetesSourceOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Logger;
  /** Each Service as it came, for whoever writes its status; undefined: it is gone. */
  readonly onService?: (key: string, raw: Json | undefined) => void;
  /** The same of TenantPolicies. */
  readonly onPolicy?: (key: string, raw: Json | undefined) => void;
  readonly observer?: WatchObserver;
  /** Absent: none are read. */
  readonly secrets?: ReadableSecrets;
}

/** Begins to watch; `synced` tells when everything is there. An API server that is away is waited for. */
export function openKubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  const source = new KubernetesSource(options);
  source.start();
  return source;
}

/** How many deletions are remembered: a cut-off is lifted within a moment of its Suspension's. */
const MAX_REMEMBERED_DELETIONS = 10_000;

/** For the confirmation of a deletion; it is asked for again. */
const CONFIRM_TIMEOUT_MS = 5_000;

export class KubernetesSource implements Source {
  readonly kind = 'kubernetes';
  readonly #options: KubernetesSourceOptions;
  readonly #closing = new AbortController();
  readonly #kindWatches: { readonly [K in AlwaysWatchedKind]: KindWatch<K> };
  readonly #secretWatches: SecretWatches | undefined;
  readonly #watches: readonly KindWatch[];
  readonly #listeners = new Set<(changedAt?: number) => void>();
  readonly #deletedSuspensions = new Set<string>();
  #reflectors: readonly Promise<void>[] = [];
  /** Ends the reflectors, so that others may begin. */
  #watching = new AbortController();
  readonly #failureLog: WatchFailureLog;
  #snapshot: SourceSnapshot | undefined;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    this.#failureLog = new WatchFailureLog(options.log, options.api.server);
    const hooks = { clock: options.clock, changed: (changedAt?: number) => this.#changed(changedAt) };
    const watch = <K extends AlwaysWatchedKind>(
      kind: K,
      raw?: (key: string, raw: Json | undefined) => void,
    ): KindWatch<K> => createKindWatch(WATCHED_KINDS[kind], { ...hooks, ...(raw && { raw }) });
    this.#kindWatches = {
      Namespace: watch('Namespace'),
      Node: watch('Node'),
      Service: watch('Service', options.onService),
      EndpointSlice: watch('EndpointSlice'),
      Pod: watch('Pod'),
      ServiceCIDR: watch('ServiceCIDR'),
      TenantPolicy: watch('TenantPolicy', options.onPolicy),
      Suspension: watch('Suspension'),
    };
    this.#secretWatches = options.secrets && new SecretWatches(options.secrets, hooks);
    this.#watches = [...Object.values(this.#kindWatches), ...(this.#secretWatches?.watches ?? [])];
  }

  start(): void {
    const { api, clock, log, observer } = this.#options;
    this.#watching = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, this.#watching.signal]);
    this.#reflectors = this.#watches.map(({ options, cache, newest }) => {
      const { path, query, isNew, pageSize } = options;
      const target = {
        listing: () => cache.listing(),
        listed: () => cache.listed(),
        put: (object: Json) => cache.put(object),
        deleted: (object: Json) => {
          if (cache === this.#kindWatches.Suspension.cache) this.#rememberDeletion(object);
          cache.deleted(object);
        },
        failed: (error: KubeApiError | undefined) => {
          const isUnserved = isNew === true && error?.code === 'NOT_FOUND';
          this.#failureLog.record(kindSubject(options), isUnserved ? undefined : error);
          cache.failed(error);
        },
      };
      const more = { ...(observer && { observer }), ...(pageSize !== undefined && { pageSize }) };
      return reflect({ api, path, query, target, clock, log, newest, ...more }, signal);
    });
  }

  get isSynced(): boolean {
    return this.#watches.every(({ cache }) => cache.isSynced);
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#waitUntil(() => this.isSynced, signal);
  }

  /**
   * A watch may be behind, or dead without a word for a while, and does not know it: a list asks for what is true now. Reads everything
   * once more, also what is being read for the first time: a list that began before may be older.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    this.#watching.abort();
    await Promise.all(this.#reflectors);
    // Not before: what had been answered already is still taken.
    for (const { cache } of this.#watches) cache.expire();
    if (!this.#closing.signal.aborted) this.start();
    await this.#waitUntil(() => this.#watches.every(({ cache }) => cache.isCurrent), signal);
  }

  snapshot(): SourceSnapshot {
    this.#snapshot ??= this.#makeSnapshot();
    return this.#snapshot;
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  originOf(): SuspensionOrigin {
    return { kind: 'kubernetes' };
  }

  /** Seen deleted, or, asked for by name, the API server itself says that it does not exist (any more). */
  async isDeleted({ uid, name, origin }: Suspension, signal: AbortSignal): Promise<boolean> {
    if (origin.kind !== 'kubernetes') return false;
    if (this.#deletedSuspensions.has(uid)) return true;
    try {
      const path = `${WATCHED_KINDS.Suspension.path}/${encodeURIComponent(name)}`;
      const found = await this.#options.api.request({ method: 'GET', path, signal, timeoutMs: CONFIRM_TIMEOUT_MS });
      return (found.metadata as { uid?: string } | undefined)?.uid !== uid;
    } catch (error) {
      // Without the name of an object it is the kind that is missing: that says nothing of this one.
      return error instanceof KubeApiError && error.code === 'NOT_FOUND' && error.missingName === name;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#listeners.clear();
    await Promise.all(this.#reflectors);
  }

  #waitUntil(isSo: () => boolean, signal: AbortSignal): Promise<void> {
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

  #makeSnapshot(): SourceSnapshot {
    const { Namespace, Node, Service, EndpointSlice, Pod, ServiceCIDR, TenantPolicy, Suspension } = this.#kindWatches;
    const secrets = this.#secretWatches?.list();
    const unreadSecrets = this.#secretWatches?.unreadableNamespaces();
    return Object.freeze({
      namespaces: Namespace.cache.list(),
      nodes: Node.cache.list(),
      services: Service.cache.list(),
      slices: EndpointSlice.cache.list(),
      pods: Pod.cache.list(),
      serviceCidrs: ServiceCIDR.cache.list(),
      policies: TenantPolicy.cache.list(),
      suspensions: Suspension.cache.list(),
      ...(secrets && { secrets }),
      ...(unreadSecrets && { unreadSecrets }),
      problems: Object.freeze(this.#watches.flatMap(({ cache }) => cache.problems())),
      unreadableKinds: this.#unreadableKinds(),
    });
  }

  #unreadableKinds(): ReadonlySet<FallbackKind> {
    return new Set(FALLBACK_KINDS.filter((kind) => this.#kindWatches[kind].cache.isUnreadable));
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
    if (this.#deletedSuspensions.size > MAX_REMEMBERED_DELETIONS && oldest !== undefined)
      this.#deletedSuspensions.delete(oldest);
  }
}
