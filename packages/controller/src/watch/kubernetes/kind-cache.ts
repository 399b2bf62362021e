import { changedAtFor, type Problem } from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { Json } from '../../kubernetes/kube-api.ts';
import type { KubeApiError } from '../../kubernetes/kube-api-error.ts';
import { creationTimeOf } from '../../parse/endpoint-slice.ts';
import { objectKey, SortedObjects } from '../../snapshot/sorted-objects.ts';
import { NewestVersion, type ReflectorTarget } from './reflector.ts';
import { unreadableKindProblems } from './watch-failures.ts';
import type { WatchedKind, WatchedKindOptions, WatchedObjects } from './watched-kinds.ts';

export interface KindCacheHooks {
  readonly clock: Pick<Clock, 'now'>;
  /** The snapshot is another one now, as the world has been since `changedAt`; undefined: not known. */
  changed(changedAt?: number): void;
  /** Each object as it came, before it is projected; undefined with the key of one that is gone. */
  raw?(key: string, object: Json | undefined): void;
}

/** Rights that are granted just now reach an API server one after the other: then waiting is better than standing in. */
const MIN_FORBIDDEN_LISTS = 3;

/** The objects of one kind, projected. What cannot be read any more is kept as it was. */
export class KindCache<K extends WatchedKind> implements ReflectorTarget {
  readonly #options: WatchedKindOptions<K>;
  readonly #hooks: KindCacheHooks;
  readonly #objects: SortedObjects<WatchedObjects[K]> = new SortedObjects();
  readonly #objectProblems = new Map<string, readonly Problem[]>();
  /** When each object was read last, and what it said last of when it was caused to change. */
  readonly #changeTimesByKey = new Map<string, { readonly heardAt: number; readonly trigger: number | undefined }>();
  /** Which version of each was projected last, where that is costly. */
  readonly #parsedVersionByKey = new Map<string, string>();
  #failure: KubeApiError | undefined;
  #unlisted: Set<string> | undefined;
  #isListed = false;
  #isCurrent = false;
  #timesForbidden = 0;

  constructor(options: WatchedKindOptions<K>, hooks: KindCacheHooks) {
    this.#options = options;
    this.#hooks = hooks;
  }

  /** Read in full at least once, or known to be such that one can go on without. */
  get isSynced(): boolean {
    return this.#isListed || this.isUnreadable || this.#countsAsEmpty;
  }

  /** Never read, and something else has to stand in for it. */
  get isUnreadable(): boolean {
    return !this.#isListed && this.#options.whenForbidden === 'table' && this.#timesForbidden >= MIN_FORBIDDEN_LISTS;
  }

  get #countsAsEmpty(): boolean {
    const { isOurs, isNew, whenForbidden } = this.#options;
    const code = this.#failure?.code;
    return ((isOurs || isNew === true) && code === 'NOT_FOUND') || (whenForbidden === 'none' && code === 'FORBIDDEN');
  }

  /** Read in full since `expire`, or nobody lets us: then it stays as it is. One that is only away is waited for. */
  get isCurrent(): boolean {
    return this.#isCurrent || (this.#failure !== undefined && this.#failure.code !== 'AWAY');
  }

  expire(): void {
    this.#isCurrent = false;
  }

  list(): readonly WatchedObjects[K][] {
    return this.#objects.list();
  }

  problems(): readonly Problem[] {
    const own = this.#failure === undefined ? [] : unreadableKindProblems(this.#options, this.#failure);
    return [...own, ...[...this.#objectProblems.values()].flat()];
  }

  listing(): void {
    this.#unlisted = new Set([...this.#objects.keys(), ...this.#objectProblems.keys()]);
  }

  listed(): void {
    for (const key of this.#unlisted ?? []) this.#remove(key);
    this.#unlisted = undefined;
    const isAwaited = !this.#isCurrent;
    this.#isListed = true;
    this.#isCurrent = true;
    if (isAwaited) this.#hooks.changed();
  }

  put(raw: Json): void {
    const key = keyOfRaw(raw);
    this.#unlisted?.delete(key);
    this.#hooks.raw?.(key, raw);
    if (this.#options.isCostly === true && this.#isParsed(key, raw)) return;
    const changedAt = this.#changedAt(key, raw);
    const { object, problems } = this.#options.project(raw);
    const saidBefore = JSON.stringify(this.#objectProblems.get(key) ?? []);
    if (problems.length > 0) this.#objectProblems.set(key, problems);
    else this.#objectProblems.delete(key);
    const isObjectChanged = object !== undefined && this.#objects.set(object);
    if (isObjectChanged || saidBefore !== JSON.stringify(problems)) this.#hooks.changed(changedAt);
  }

  deleted(raw: Json): void {
    this.#remove(keyOfRaw(raw));
  }

  failed(error: KubeApiError | undefined): void {
    const before = { message: this.#failure?.message, isUnread: this.isUnreadable };
    this.#failure = error;
    if (error === undefined) this.#timesForbidden = 0;
    else if (error.code === 'FORBIDDEN') this.#timesForbidden += 1;
    if (before.message !== error?.message || before.isUnread !== this.isUnreadable) this.#hooks.changed();
  }

  #remove(key: string): void {
    this.#hooks.raw?.(key, undefined);
    this.#changeTimesByKey.delete(key);
    this.#parsedVersionByKey.delete(key);
    const hadProblems = this.#objectProblems.delete(key);
    if (this.#objects.delete(key) || hadProblems) this.#hooks.changed(this.#hooks.clock.now());
  }

  /** It is about to be, else. */
  #isParsed(key: string, raw: Json): boolean {
    const { uid, resourceVersion } = (raw.metadata ?? {}) as { uid?: unknown; resourceVersion?: unknown };
    const version = `${uid}/${resourceVersion}`;
    const isSame = this.#parsedVersionByKey.get(key) === version;
    this.#parsedVersionByKey.set(key, version);
    return isSame;
  }

  /** What is read before the first list is whole was there before us. */
  #changedAt(key: string, raw: Json): number | undefined {
    const { changeTriggerTimeOf } = this.#options;
    const observedAt = this.#hooks.clock.now();
    if (changeTriggerTimeOf === undefined) return this.#isListed ? observedAt : undefined;
    const triggeredAt = changeTriggerTimeOf(raw);
    const last = this.#changeTimesByKey.get(key);
    this.#changeTimesByKey.set(key, { heardAt: observedAt, trigger: triggeredAt ?? last?.trigger });
    if (!this.#isListed) return undefined;
    return changedAtFor({
      observedAt,
      triggeredAt,
      previousTriggeredAt: last?.trigger,
      notBefore: last?.heardAt ?? creationTimeOf(raw),
    });
  }
}

function keyOfRaw(raw: Json): string {
  const { namespace, name } = (raw.metadata ?? {}) as { namespace?: string; name?: string };
  return objectKey({ name: name ?? '', ...(namespace !== undefined && { namespace }) });
}

/** One list and watch, and what it has brought. */
export interface KindWatch<K extends WatchedKind = WatchedKind> {
  readonly options: WatchedKindOptions<K>;
  readonly cache: KindCache<K>;
  /** Of all reflectors that fill the cache, one after the other. */
  readonly newest: NewestVersion;
}

export function createKindWatch<K extends WatchedKind>(
  options: WatchedKindOptions<K>,
  hooks: KindCacheHooks,
): KindWatch<K> {
  return { options, cache: new KindCache(options, hooks), newest: new NewestVersion() };
}
