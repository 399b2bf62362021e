import { backoffMs, type Clock, type Logger, wait } from '@weir/runtime';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import { errorCodeFor, KubeApiError } from '../../kubernetes/kube-api-error.ts';

// Lists a kind, then watches it, and starts again after every error. The informer of the client library is not used, because it stops
// at the first error other than a time-out, keeps every object in full, and lists without pages.

/** Receives the objects of one kind. */
export interface ReflectorTarget {
  /** Called when a list begins, or begins again. Objects that do not arrive by `put` before `listCompleted` no longer exist. */
  listStarted(): void;
  listCompleted(): void;
  put(object: Json): void;
  deleted(object: Json): void;
  /** Called with the reason when the kind cannot be read, and with undefined when the kind can be read again. */
  failureChanged(error: KubeApiError | undefined): void;
}

/** Receives events for metrics. */
export interface WatchObserver {
  /**
   * Called when a watch has ended or failed to open. `closed`: the server closed the watch, or the watch was idle for too long.
   * `gone`: the version to watch from was too old. `error`: any other reason.
   */
  watchEnded(reason: 'closed' | 'gone' | 'error'): void;
  /** Called when the kind was listed completely. */
  listCompleted(which: 'first' | 'again'): void;
  /** Called when a list was refused because it was older than an earlier response. */
  staleListRefused(): void;
}

export interface ReflectorOptions {
  readonly api: Pick<KubeApi, 'request' | 'watch'>;
  readonly path: string;
  /** Label and field selectors. */
  readonly query: Readonly<Record<string, string>>;
  readonly target: ReflectorTarget;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
  /** Objects per page. By default pages are large, and a list whose pages expire is repeated without pages. */
  readonly pageSize?: number;
  readonly observer?: WatchObserver;
  /** The newest version that an earlier reflector of the same kind has read. */
  readonly newest?: NewestVersion;
}

const DEFAULT_PAGE_SIZE = 500;
const RETRY_BACKOFF = { minMs: 200, maxMs: 30_000 };
/**
 * The pauses between attempts to read a kind that is missing or forbidden. The kind may become readable soon if an installation is in
 * progress.
 */
const REFUSED_RETRY_BACKOFF = { minMs: 2_000, maxMs: 10_000 };
/**
 * The server is asked to end each watch after a random time between one and two times this value, so that watches do not end at the
 * same moment.
 */
const WATCH_SECONDS = 240;
/** The shortest time between the starts of two watches, in case a server ends each watch at once. */
const MIN_WATCH_MS = 1_000;
/**
 * The number of failed watches after which the kind is listed again. A server that was restored from a backup refuses a version newer than
 * the backup with errors that an unreachable server causes too.
 */
const MAX_ATTEMPTS_PER_VERSION = 5;

/** Lists and watches a kind until the signal aborts. Never rejects because of the API server. */
export function reflect(options: ReflectorOptions, signal: AbortSignal): Promise<void> {
  return new Reflector(options, signal).run();
}

class Reflector {
  readonly #options: ReflectorOptions;
  readonly #signal: AbortSignal;
  readonly #random: () => number;
  /** The version to watch from; undefined if a list must come first. */
  #version: string | undefined;
  readonly #newest: NewestVersion;
  #failures = 0;

  constructor(options: ReflectorOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#random = options.random ?? Math.random;
    this.#newest = options.newest ?? new NewestVersion();
  }

  async run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#signal.aborted) {
      const startedAt = clock.monotonic();
      try {
        this.#version ??= await this.#list();
        await this.#watch(this.#version);
        this.#options.observer?.watchEnded('closed');
        await this.#waitMs(MIN_WATCH_MS - (clock.monotonic() - startedAt));
      } catch (error) {
        if (!this.#signal.aborted) await this.#waitMs(this.#recordFailure(error));
      }
    }
  }

  #waitMs(ms: number): Promise<void> {
    return ms <= 0 ? Promise.resolve() : wait(this.#options.clock, ms, this.#signal).catch(() => undefined);
  }

  /** Records a failure, and returns how many milliseconds to wait before the next attempt. */
  #recordFailure(error: unknown): number {
    const { path, target, log } = this.#options;
    const failure =
      error instanceof KubeApiError ? error : new KubeApiError('AWAY', `${path} cannot be read`, { cause: error });
    this.#failures += 1;
    if (this.#version !== undefined) this.#options.observer?.watchEnded(failure.code === 'GONE' ? 'gone' : 'error');
    if (failure.code === 'GONE') {
      log.debug({ path, version: this.#version }, 'the version to watch from is too old; listing again');
      this.#version = undefined;
      return this.#failures === 1 ? 0 : backoffMs(this.#failures, { ...RETRY_BACKOFF, random: this.#random });
    }
    target.failureChanged(failure);
    const isAway = failure.code === 'AWAY';
    if (!isAway || this.#failures % MAX_ATTEMPTS_PER_VERSION === 0) this.#version = undefined;
    const backoff = backoffMs(this.#failures, {
      ...(isAway ? RETRY_BACKOFF : REFUSED_RETRY_BACKOFF),
      random: this.#random,
    });
    return Math.max(backoff, Math.min(failure.retryAfterMs ?? 0, RETRY_BACKOFF.maxMs));
  }

  #recordRecovery(): void {
    this.#options.target.failureChanged(undefined);
    this.#failures = 0;
  }

  /**
   * Lists the kind, and returns the version to watch from. If a page expires, the list begins again. Without `pageSize`, the repeated list
   * has no pages.
   */
  async #list(): Promise<string> {
    const { api, path, query, target, observer, pageSize } = this.#options;
    const which = this.#newest.isKnown ? 'again' : 'first';
    const limit = { limit: String(pageSize ?? DEFAULT_PAGE_SIZE) };
    let paging: Record<string, string> = limit;
    target.listStarted();
    for (;;) {
      const page = await api
        .request({ method: 'GET', path, query: { ...query, ...paging }, signal: this.#signal })
        .catch((error: unknown) => {
          if (error instanceof KubeApiError && error.code === 'GONE' && 'continue' in paging) return undefined;
          throw error;
        });
      if (page === undefined) {
        paging = pageSize === undefined ? {} : limit;
        target.listStarted();
        continue;
      }
      const { items, metadata } = page as { items?: readonly Json[] | null; metadata?: ListMeta };
      this.#assertNotStale(metadata?.resourceVersion);
      for (const item of items ?? []) target.put(item);
      if (metadata?.continue) {
        paging = { ...limit, continue: metadata.continue };
        continue;
      }
      target.listCompleted();
      observer?.listCompleted(which);
      this.#recordRecovery();
      return metadata?.resourceVersion ?? '0';
    }
  }

  /**
   * Throws if a list is older than an earlier response. Call this before any object of the list is used. The list is requested again
   * until the API server has caught up.
   */
  #assertNotStale(version: string | undefined): void {
    const { path, clock, observer } = this.#options;
    const freshness = this.#newest.accept(version, clock.monotonic());
    if (freshness.kind === 'fresh') return;
    observer?.staleListRefused();
    throw new KubeApiError(
      'AWAY',
      `${path}: the API server lags behind: its list has version ${version}, but the controller has already read version ${freshness.newest}`,
    );
  }

  async #watch(from: string): Promise<void> {
    const { api, path, query, target } = this.#options;
    const timeoutSeconds = String(Math.round(WATCH_SECONDS * (1 + this.#random())));
    let failure: KubeApiError | undefined;
    await api.watch({
      path,
      query: { ...query, resourceVersion: from, timeoutSeconds },
      signal: this.#signal,
      onOpen: () => this.#recordRecovery(),
      onEvent: (type, object) => {
        if (type === 'ERROR') {
          failure = watchErrorOf(object, path);
          return;
        }
        const { resourceVersion } = (object.metadata ?? {}) as ListMeta;
        this.#version = resourceVersion ?? this.#version;
        this.#newest.observe(resourceVersion);
        if (type === 'DELETED') target.deleted(object);
        else if (type === 'ADDED' || type === 'MODIFIED') target.put(object);
      },
    });
    if (failure !== undefined) throw failure;
  }
}

interface ListMeta {
  readonly resourceVersion?: string;
  readonly continue?: string;
}

/** Returns the error for the `Status` object that a server sends at the end of a watch. */
function watchErrorOf(status: Json, path: string): KubeApiError {
  const { code, message } = status as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' ? message : 'the watch failed';
  return new KubeApiError(errorCodeFor(typeof code === 'number' ? code : 500), `WATCH ${path}: ${text}`);
}

/**
 * How long lists with older versions are refused. A lagging server catches up within seconds. A server that still sends an older
 * version after this time was restored from a backup, so its version is accepted.
 */
const RESTORED_SERVER_AFTER_MS = 120_000;
export type Freshness = { readonly kind: 'fresh' } | { readonly kind: 'stale'; readonly newest: bigint };

/**
 * The newest resource version that was read of one kind. Behind one address there may be several API servers, and a list from a lagging
 * server must not revert newer objects. Versions of one kind are increasing integers (guaranteed since Kubernetes 1.35, true before);
 * any other text counts as fresh.
 */
export class NewestVersion {
  #newest: bigint | undefined;
  /** Since when lists have been older than `#newest`, in milliseconds of the monotonic clock. */
  #staleSince: number | undefined;

  get isKnown(): boolean {
    return this.#newest !== undefined;
  }

  observe(version: string | undefined): void {
    const number = versionNumber(version);
    if (number !== undefined && (this.#newest === undefined || number > this.#newest)) this.#newest = number;
  }

  /**
   * Decides whether a list of this version may be used. If the list may be used, records the version. `now` is in milliseconds of the
   * monotonic clock.
   */
  accept(version: string | undefined, now: number): Freshness {
    const number = versionNumber(version);
    if (number !== undefined && this.#newest !== undefined && number < this.#newest) {
      this.#staleSince ??= now;
      if (now - this.#staleSince < RESTORED_SERVER_AFTER_MS) return { kind: 'stale', newest: this.#newest };
      this.#newest = number;
    }
    this.#staleSince = undefined;
    this.observe(version);
    return { kind: 'fresh' };
  }
}

function versionNumber(version: string | undefined): bigint | undefined {
  return version !== undefined && /^\d+$/.test(version) ? BigInt(version) : undefined;
}
