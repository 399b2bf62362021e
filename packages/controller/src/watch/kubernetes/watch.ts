import { KindCache, type KindCacheHooks } from './kind-cache.ts';
import type { WatchedKind, WatchedKindOptions } from './kinds.ts';
import { NewestVersion } from './newest-version.ts';

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
