import type { Problem, ServiceObject, Suspension, SuspensionOrigin } from '@weir/model';
import type { Clock, Logger } from '@weir/runtime';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import { KubeApiError } from '../../kubernetes/kube-api-error.ts';
import { FALLBACK_KINDS, type FallbackKind } from '../../snapshot/fallback-objects.ts';
import type { Source, SourceSnapshot } from '../source.ts';
import { SnapshotCache } from '../source.ts';
import { type ConfigMapWatch, ConfigMapWatches } from './config-map-watches.ts';
import { createKindWatch, type KindCacheHooks, type KindWatch } from './kind-cache.ts';
import { reflect, type WatchObserver } from './reflector.ts';
import { type ReadableSecrets, SecretWatches } from './secret-watches.ts';
import { kindSubject, WatchFailureLog } from './watch-failures.ts';
import { type AlwaysWatchedKind, WATCHED_KINDS, watchedKindsFor } from './watched-kinds.ts';

export interface KubernetesSourceOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with each Service as the API server sent it; with undefined when the Service was deleted. */
  readonly onService?: (key: string, raw: Json | undefined) => void;
  /** Called with each TenantPolicy as the API server sent it; with undefined when the TenantPolicy was deleted. */
  readonly onPolicy?: (key: string, raw: Json | undefined) => void;
  readonly observer?: WatchObserver;
  /** The field manager with which this fleet writes the status of Services. By default the status of Services is ignored. */
  readonly statusManager?: string;
  /** The Secrets to read; if absent, no Secrets are read. */
  readonly secrets?: ReadableSecrets;
  /** Whether the fleet serves the Service. The source reads the ConfigMaps that these Services name; if absent, no ConfigMaps. */
  readonly isOwned?: (service: ServiceObject) => boolean;
}

/** The maximum number of remembered deletions of Suspensions. A deletion is needed only until the suspension is lifted. */
const MAX_REMEMBERED_DELETIONS = 10_000;

/** The timeout of a request that confirms a deletion. After a timeout, the caller tries again later. */
const CONFIRM_TIMEOUT_MS = 5_000;

/** Watches the objects of an API server, beginning in the constructor. Retries while the API server is unreachable. */
export class KubernetesSource implements Source {
  readonly kind = 'kubernetes';
  readonly #options: KubernetesSourceOptions;
  readonly #closing = new AbortController();
  readonly #kindWatches: { readonly [K in AlwaysWatchedKind]: KindWatch<K> };
  readonly #secretWatches: SecretWatches | undefined;
  readonly #configMapWatches: ConfigMapWatches | undefined;
  readonly #deletedSuspensions = new Set<string>();
  readonly #reflectors = new Set<Promise<void>>();
  /** Aborts the current reflectors, so that `refresh` can start new ones. */
  #reflecting = new AbortController();
  #hasSynced = false;
  /** The Services of the last snapshot. */
  #lastShown: readonly ServiceObject[] = [];
  readonly #failureLog: WatchFailureLog;
  readonly #snapshots = new SnapshotCache(() => this.#buildSnapshot());

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    this.#failureLog = new WatchFailureLog(options.log, options.api.server);
    const hooks = { clock: options.clock, onChange: (changedAt?: number) => this.#snapshots.invalidate(changedAt) };
    const kinds = watchedKindsFor(options);
    const watch = <K extends AlwaysWatchedKind>(kind: K, onRawObject?: KindCacheHooks['onRawObject']): KindWatch<K> =>
      createKindWatch(kinds[kind], { ...hooks, ...(onRawObject && { onRawObject }) });
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
    this.#configMapWatches = options.isOwned && new ConfigMapWatches(options.isOwned, hooks);
    this.#start();
  }

  get #watches(): readonly KindWatch[] {
    const { watches: secrets = [] } = this.#secretWatches ?? {};
    const { watches: configMaps = [] } = this.#configMapWatches ?? {};
    return [...Object.values(this.#kindWatches), ...secrets, ...configMaps];
  }

  get isSynced(): boolean {
    this.#followConfigMaps();
    // Stays true when a Service begins to name a ConfigMap that is not read yet.
    this.#hasSynced ||= this.#watches.every(({ cache }) => cache.isSynced);
    return this.#hasSynced;
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#waitUntil(() => this.isSynced, signal);
  }

  /**
   * Lists every kind again, because a watch may be behind, or its connection may be dead, without any error. A list in progress is started
   * again as well, because its response may be older than this call.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    this.#reflecting.abort();
    await Promise.all(this.#reflectors);
    // The caches must expire after the wait, because until then the reflectors may deliver responses that were received before the abort.
    for (const { cache } of this.#watches) cache.expire();
    if (!this.#closing.signal.aborted) this.#start();
    const isCurrent = (): boolean => {
      this.#followConfigMaps();
      return this.#watches.every(({ cache }) => cache.isCurrent);
    };
    await this.#waitUntil(isCurrent, signal);
  }

  snapshot(): SourceSnapshot {
    return this.#snapshots.get();
  }

  onChange(listener: (changedAt?: number) => void): () => void {
    return this.#snapshots.onChange(listener);
  }

  originOf(): SuspensionOrigin {
    return { kind: 'kubernetes' };
  }

  /** Returns true if a watch delivered the deletion, or if the API server answers that the object does not exist or has another UID. */
  async isDeleted({ uid, name, origin }: Suspension, signal: AbortSignal): Promise<boolean> {
    if (origin.kind !== 'kubernetes') return false;
    if (this.#deletedSuspensions.has(uid)) return true;
    try {
      const path = `${WATCHED_KINDS.Suspension.path}/${encodeURIComponent(name)}`;
      const found = await this.#options.api.request({ method: 'GET', path, signal, timeoutMs: CONFIRM_TIMEOUT_MS });
      return (found.metadata as { uid?: string } | undefined)?.uid !== uid;
    } catch (error) {
      // A 404 without the object's name means that the kind is missing. A missing kind does not prove that the object was deleted.
      return error instanceof KubeApiError && error.code === 'NOT_FOUND' && error.missingName === name;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#snapshots.close();
    await Promise.all(this.#reflectors);
  }

  #start(): void {
    this.#reflecting = new AbortController();
    for (const watch of this.#watches) this.#reflect(watch);
  }

  #reflect({ options, cache, newest, ending }: KindWatch & Partial<Pick<ConfigMapWatch, 'ending'>>): void {
    const { api, clock, log, observer } = this.#options;
    const signals = [this.#closing.signal, this.#reflecting.signal, ending?.signal ?? []].flat();
    const { path, query, isOptional, pageSize } = options;
    const target = {
      listStarted: () => cache.listStarted(),
      listCompleted: () => cache.listCompleted(),
      put: (object: Json) => cache.put(object),
      deleted: (object: Json) => {
        if (cache === this.#kindWatches.Suspension.cache) this.#rememberDeletion(object);
        cache.deleted(object);
      },
      failureChanged: (error: KubeApiError | undefined) => {
        const isMissingOptionalKind = isOptional === true && error?.code === 'NOT_FOUND';
        this.#failureLog.record(kindSubject(options), isMissingOptionalKind ? undefined : error);
        cache.failureChanged(error);
      },
    };
    const optional = { ...(observer && { observer }), ...(pageSize !== undefined && { pageSize }) };
    const source = { api, path, query, target, clock, log, newest, ...optional };
    const reflector = reflect(source, AbortSignal.any(signals)).finally(() => this.#reflectors.delete(reflector));
    this.#reflectors.add(reflector);
  }

  /** Watches the ConfigMaps that the Services name now. */
  #followConfigMaps(): void {
    const { Service } = this.#kindWatches;
    if (this.#closing.signal.aborted || this.#reflecting.signal.aborted || !Service.cache.isSynced) return;
    for (const watch of this.#configMapWatches?.update(Service.cache.list()) ?? []) this.#reflect(watch);
  }

  /** Returns the problems of all watches. Only one of the ConfigMaps is reported, because all lack the same permission. */
  #problems(): readonly Problem[] {
    const configMaps = this.#configMapWatches?.watches ?? [];
    const ofConfigMaps = configMaps.map(({ cache }) => cache.problems()).find((problems) => problems.length > 0) ?? [];
    const others = [...Object.values(this.#kindWatches), ...(this.#secretWatches?.watches ?? [])];
    return Object.freeze([...others.flatMap(({ cache }) => cache.problems()), ...ofConfigMaps]);
  }

  #waitUntil(condition: () => boolean, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (condition()) resolve();
    };
    const unsubscribe = this.onChange(check);
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    check();
    return promise.finally(() => {
      unsubscribe();
      signal.removeEventListener('abort', abort);
    });
  }

  #buildSnapshot(): SourceSnapshot {
    const { Namespace, Node, EndpointSlice, Pod, ServiceCIDR, TenantPolicy, Suspension } = this.#kindWatches;
    const secrets = this.#secretWatches?.list();
    const unreadableSecrets = this.#secretWatches?.unreadableNamespaces();
    this.#followConfigMaps();
    const configMaps = this.#configMapWatches?.list();
    const unreadConfigMaps = this.#configMapWatches?.unread();
    const snapshot: SourceSnapshot = {
      namespaces: Namespace.cache.list(),
      nodes: Node.cache.list(),
      services: this.#shownServices(),
      slices: EndpointSlice.cache.list(),
      pods: Pod.cache.list(),
      serviceCidrs: ServiceCIDR.cache.list(),
      policies: TenantPolicy.cache.list(),
      suspensions: Suspension.cache.list(),
      ...(secrets && { secrets }),
      ...(unreadableSecrets && ({ unreadableSecrets } satisfies Partial<SourceSnapshot>)),
      ...(configMaps && { configMaps }),
      ...(unreadConfigMaps && { unreadConfigMaps }),
      problems: this.#problems(),
      unreadableKinds: this.#unreadableKinds(),
    };
    return Object.freeze(snapshot);
  }

  /**
   * Returns the Services. A Service that has begun to name a ConfigMap appears when the ConfigMap is read, because otherwise the
   * status of the Service would say for a moment that the ConfigMap is missing.
   */
  #shownServices(): readonly ServiceObject[] {
    const services = this.#kindWatches.Service.cache.list();
    const waiting = this.#configMapWatches?.waitingServices();
    if (waiting === undefined || waiting.size === 0) {
      this.#lastShown = services;
      return services;
    }
    const lastByUid = new Map(this.#lastShown.map((service) => [service.uid, service]));
    const shown = services.flatMap((service) => (waiting.has(service) ? (lastByUid.get(service.uid) ?? []) : service));
    this.#lastShown = Object.freeze(shown);
    return this.#lastShown;
  }

  #unreadableKinds(): ReadonlySet<FallbackKind> {
    return new Set(FALLBACK_KINDS.filter((kind) => this.#kindWatches[kind].cache.isUnreadable));
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
