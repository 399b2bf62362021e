import { backoffMs, type Clock, type Logger, wait } from '@weir/runtime';
import type { Json, KubeApi } from '../../kubernetes/kube-api.ts';
import { errorCodeFor, KubeApiError } from '../../kubernetes/kube-api-error.ts';

// List, then watch from there, for ever. The client library's informer gives up at the first error that is no time-out, keeps every
// object whole, and lists in one piece; this one keeps going, and hands each object on as it comes.

/** Whoever keeps the objects. */
export interface ReflectorTarget {
  /** A list begins (or begins again): objects not put until `listed` are gone. */
  listing(): void;
  listed(): void;
  put(object: Json): void;
  deleted(object: Json): void;
  /** The kind cannot be read now, and why; undefined: it can again. */
  failed(error: KubeApiError | undefined): void;
}

/** Told of what is worth counting. */
export interface WatchObserver {
  /** A watch ended: by the server or for its silence, because it went too far back, or by any other error, also before it was open. */
  ended(reason: 'closed' | 'gone' | 'error'): void;
  /** The kind was read in full. */
  listed(which: 'first' | 'again'): void;
  /** An answer was not used because it was older than what had been read before. */
  stale(): void;
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
  /** How many objects are asked for at once, always; default: many, and all of them in one piece when pages expire on the way. */
  readonly pageSize?: number;
  /** Default: nobody counts. */
  readonly observer?: WatchObserver;
  /** Of whoever reflected the same kind before. */
  readonly newest?: NewestVersion;
}

const PAGE_SIZE = 500;
const RETRY_BACKOFF = { minMs: 200, maxMs: 30_000 };
/** A kind that does not exist, or may not be read, may do so soon: somebody is installing. */
const REFUSED_RETRY_BACKOFF = { minMs: 2_000, maxMs: 10_000 };
/** The server ends watches after this many seconds, up to twice as many: not all of them at one moment. */
const WATCH_SECONDS = 240;
/** A server that ends watches at once must not be asked again at once. */
const MIN_WATCH_MS = 1_000;
/** A server that was restored from a backup refuses a version that it never had as if it were away. */
const MAX_TRIES_PER_VERSION = 5;

/** Runs until the signal aborts; never rejects for what the API server does. */
export function reflect(options: ReflectorOptions, signal: AbortSignal): Promise<void> {
  return new Reflector(options, signal).run();
}

class Reflector {
  readonly #options: ReflectorOptions;
  readonly #signal: AbortSignal;
  readonly #random: () => number;
  /** Where to go on watching; undefined: list first. */
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
        this.#options.observer?.ended('closed');
        await this.#pause(MIN_WATCH_MS - (clock.monotonic() - startedAt));
      } catch (error) {
        if (!this.#signal.aborted) await this.#pause(this.#fail(error));
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return ms <= 0 ? Promise.resolve() : wait(this.#options.clock, ms, this.#signal).catch(() => undefined);
  }

  /** How long to wait. */
  #fail(error: unknown): number {
    const { path, target, log } = this.#options;
    const failure =
      error instanceof KubeApiError ? error : new KubeApiError('AWAY', `${path} cannot be read`, { cause: error });
    this.#failures += 1;
    if (this.#version !== undefined) this.#options.observer?.ended(failure.code === 'GONE' ? 'gone' : 'error');
    if (failure.code === 'GONE') {
      log.debug({ path, version: this.#version }, 'the history does not go back so far: listing again');
      this.#version = undefined;
      return this.#failures === 1 ? 0 : backoffMs(this.#failures, { ...RETRY_BACKOFF, random: this.#random });
    }
    target.failed(failure);
    const isAway = failure.code === 'AWAY';
    if (!isAway || this.#failures % MAX_TRIES_PER_VERSION === 0) this.#version = undefined;
    const backoff = backoffMs(this.#failures, {
      ...(isAway ? RETRY_BACKOFF : REFUSED_RETRY_BACKOFF),
      random: this.#random,
    });
    return Math.max(backoff, Math.min(failure.retryAfterMs ?? 0, RETRY_BACKOFF.maxMs));
  }

  #recovered(): void {
    this.#options.target.failed(undefined);
    this.#failures = 0;
  }

  /** The version to watch from. A list whose pages expire on the way is begun again, in one piece where that is allowed. */
  async #list(): Promise<string> {
    const { api, path, query, target, observer, pageSize } = this.#options;
    const which = this.#newest.isKnown ? 'again' : 'first';
    const limit = { limit: String(pageSize ?? PAGE_SIZE) };
    let paging: Record<string, string> = limit;
    target.listing();
    for (;;) {
      const page = await api
        .request({ method: 'GET', path, query: { ...query, ...paging }, signal: this.#signal })
        .catch((error: unknown) => {
          if (error instanceof KubeApiError && error.code === 'GONE' && 'continue' in paging) return undefined;
          throw error;
        });
      if (page === undefined) {
        paging = pageSize === undefined ? {} : limit;
        target.listing();
        continue;
      }
      const { items, metadata } = page as { items?: readonly Json[] | null; metadata?: ListMeta };
      this.#refuseStale(metadata?.resourceVersion);
      for (const item of items ?? []) target.put(item);
      if (metadata?.continue) {
        paging = { ...limit, continue: metadata.continue };
        continue;
      }
      target.listed();
      observer?.listed(which);
      this.#recovered();
      return metadata?.resourceVersion ?? '0';
    }
  }

  /** Before anything of it is taken. A server that lags catches up, or somebody takes it away. */
  #refuseStale(version: string | undefined): void {
    const { path, clock, observer } = this.#options;
    const verdict = this.#newest.accept(version, clock.monotonic());
    if (verdict.kind === 'fresh') return;
    observer?.stale();
    throw new KubeApiError(
      'AWAY',
      `${path}: the API server lags: it answers as of version ${version}, and version ${verdict.newest} was read before`,
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
      onOpen: () => this.#recovered(),
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

/** The `Status` that a watch ends with. */
function watchErrorOf(status: Json, path: string): KubeApiError {
  const { code, message } = status as { code?: unknown; message?: unknown };
  const words = typeof message === 'string' ? message : 'the watch failed';
  return new KubeApiError(errorCodeFor(typeof code === 'number' ? code : 500), `WATCH ${path}: ${words}`);
}

/** A server that lags does so for seconds. One that was restored from a backup does not come back to where it was: from then on it is taken. */
const RESTORED_SERVER_AFTER_MS = 120_000;
export type Freshness = { readonly kind: 'fresh' } | { readonly kind: 'stale'; readonly newest: bigint };

/**
 * The newest version that was read of one kind: of several API servers behind one address one may lag, and what it says must not undo
 * what another one said. Versions of one kind are integers that only go up (a promise of Kubernetes since 1.35, and so before); what
 * is none is always fresh.
 */
export class NewestVersion {
  #newest: bigint | undefined;
  /** On a clock that never jumps. */
  #staleSince: number | undefined;

  /** Something was read at all. */
  get isKnown(): boolean {
    return this.#newest !== undefined;
  }

  observe(version: string | undefined): void {
    const number = versionNumber(version);
    if (number !== undefined && (this.#newest === undefined || number > this.#newest)) this.#newest = number;
  }

  /** Whether a list of this version may be used; then it is seen. `now`: milliseconds of a clock that never jumps. */
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
