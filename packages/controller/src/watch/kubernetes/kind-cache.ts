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
  /** Called when the list or the problems changed. `changedAt` as in `Source.onChange`. */
  onChange(changedAt?: number): void;
  /** Called with each object before it is parsed; with undefined when the object was deleted. */
  onRawObject?(key: string, object: Json | undefined): void;
}

/**
 * The number of refused lists after which fallback objects are used. New permissions reach the API servers one after the other, so
 * a few refusals may be temporary.
 */
const MIN_FORBIDDEN_LISTS = 3;

/**
 * The parsed objects of one kind. If an object becomes invalid, its last version stays. If the kind becomes unreadable, all objects
 * stay.
 */
export class KindCache<K extends WatchedKind> implements ReflectorTarget {
  readonly #options: WatchedKindOptions<K>;
  readonly #hooks: KindCacheHooks;
  readonly #objects: SortedObjects<WatchedObjects[K]> = new SortedObjects();
  readonly #objectProblems = new Map<string, readonly Problem[]>();
  /** When each object was last received, and when its last change was triggered. */
  readonly #changeTimesByKey = new Map<
    string,
    { readonly receivedAt: number; readonly triggeredAt: number | undefined }
  >();
  /** The last parsed version of each object, for kinds that are expensive to parse. */
  readonly #parsedVersionByKey = new Map<string, string>();
  #failure: KubeApiError | undefined;
  #keysMissingFromList: Set<string> | undefined;
  #isListed = false;
  #isCurrent = false;
  #forbiddenLists = 0;

  constructor(options: WatchedKindOptions<K>, hooks: KindCacheHooks) {
    this.#options = options;
    this.#hooks = hooks;
  }

  /** Whether the kind was listed completely, or the controller can work without it. */
  get isSynced(): boolean {
    return this.#isListed || this.isUnreadable || this.#isTreatedAsEmpty;
  }

  /**
   * Whether the kind was never listed because the API server refuses the list. Then fallback objects must replace the objects of the kind.
   */
  get isUnreadable(): boolean {
    return !this.#isListed && this.#options.onForbidden === 'fallback' && this.#forbiddenLists >= MIN_FORBIDDEN_LISTS;
  }

  get #isTreatedAsEmpty(): boolean {
    const { isWeirResource, isOptional, onForbidden } = this.#options;
    const code = this.#failure?.code;
    return (
      ((isWeirResource || isOptional === true) && code === 'NOT_FOUND') ||
      (onForbidden === 'empty' && code === 'FORBIDDEN')
    );
  }

  /**
   * Whether the kind was listed since the last call of `expire`, or the API server refuses the list. False while the API server is
   * unreachable.
   */
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

  listStarted(): void {
    this.#keysMissingFromList = new Set([...this.#objects.keys(), ...this.#objectProblems.keys()]);
  }

  listCompleted(): void {
    for (const key of this.#keysMissingFromList ?? []) this.#remove(key);
    this.#keysMissingFromList = undefined;
    const isAwaited = !this.#isCurrent;
    this.#isListed = true;
    this.#isCurrent = true;
    if (isAwaited) this.#hooks.onChange();
  }

  put(raw: Json): void {
    const key = keyOfRaw(raw);
    this.#keysMissingFromList?.delete(key);
    this.#hooks.onRawObject?.(key, raw);
    if (this.#options.isExpensiveToParse === true && this.#isParsed(key, raw)) return;
    const changedAt = this.#changedAt(key, raw);
    const { object: parsed, problems } = this.#options.parse(raw);
    const previous = this.#objects.get(key);
    const object = parsed && previous && this.#options.reuse ? this.#options.reuse(parsed, previous) : parsed;
    const previousProblems = JSON.stringify(this.#objectProblems.get(key) ?? []);
    if (problems.length > 0) this.#objectProblems.set(key, problems);
    else this.#objectProblems.delete(key);
    const isObjectChanged = object !== undefined && this.#objects.set(object);
    if (isObjectChanged || previousProblems !== JSON.stringify(problems)) this.#hooks.onChange(changedAt);
  }

  deleted(raw: Json): void {
    this.#remove(keyOfRaw(raw));
  }

  failureChanged(error: KubeApiError | undefined): void {
    const before = { message: this.#failure?.message, isUnreadable: this.isUnreadable };
    this.#failure = error;
    if (error === undefined) this.#forbiddenLists = 0;
    else if (error.code === 'FORBIDDEN') this.#forbiddenLists += 1;
    if (before.message !== error?.message || before.isUnreadable !== this.isUnreadable) this.#hooks.onChange();
  }

  #remove(key: string): void {
    this.#hooks.onRawObject?.(key, undefined);
    this.#changeTimesByKey.delete(key);
    this.#parsedVersionByKey.delete(key);
    const hadProblems = this.#objectProblems.delete(key);
    if (this.#objects.delete(key) || hadProblems) this.#hooks.onChange(this.#hooks.clock.now());
  }

  /** Returns whether this version of the object was already parsed, and records the version as parsed. */
  #isParsed(key: string, raw: Json): boolean {
    const { uid, resourceVersion } = (raw.metadata ?? {}) as { uid?: unknown; resourceVersion?: unknown };
    const version = `${uid}/${resourceVersion}`;
    const isSame = resourceVersion !== undefined && this.#parsedVersionByKey.get(key) === version;
    this.#parsedVersionByKey.set(key, version);
    return isSame;
  }

  /**
   * Returns when the object changed, in milliseconds since the epoch. Undefined until the first list is complete, because the objects
   * in that list existed before this process.
   */
  #changedAt(key: string, raw: Json): number | undefined {
    const { changeTriggerTimeOf } = this.#options;
    const observedAt = this.#hooks.clock.now();
    if (changeTriggerTimeOf === undefined) return this.#isListed ? observedAt : undefined;
    const triggeredAt = changeTriggerTimeOf(raw);
    const last = this.#changeTimesByKey.get(key);
    this.#changeTimesByKey.set(key, { receivedAt: observedAt, triggeredAt: triggeredAt ?? last?.triggeredAt });
    if (!this.#isListed) return undefined;
    return changedAtFor({
      observedAt,
      triggeredAt,
      previousTriggeredAt: last?.triggeredAt,
      notBefore: last?.receivedAt ?? creationTimeOf(raw),
    });
  }
}

function keyOfRaw(raw: Json): string {
  const { namespace, name } = (raw.metadata ?? {}) as { namespace?: string; name?: string };
  return objectKey({ name: name ?? '', ...(namespace !== undefined && { namespace }) });
}

/** One kind that is listed and watched, with its cache. */
export interface KindWatch<K extends WatchedKind = WatchedKind> {
  readonly options: WatchedKindOptions<K>;
  readonly cache: KindCache<K>;
  /** The newest version that was read. Shared by the reflectors that fill the cache one after the other. */
  readonly newest: NewestVersion;
}

export function createKindWatch<K extends WatchedKind>(
  options: WatchedKindOptions<K>,
  hooks: KindCacheHooks,
): KindWatch<K> {
  return { options, cache: new KindCache(options, hooks), newest: new NewestVersion() };
}
