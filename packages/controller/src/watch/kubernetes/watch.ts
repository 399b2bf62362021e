import { KindCache, type KindCacheHooks } from './kind-cache.ts';
import type { KindOptions, WatchedKind } from './kinds.ts';
import { NewestVersion } from './newest-version.ts';

/** One list and watch, and what it has brought. */
export interface Watch<K extends WatchedKind = WatchedKind> {
  readonly options: KindOptions<K>;
  readonly cache: KindCache<K>;
  /** Of all reflectors that fill the cache, one after the other. */
  readonly newest: NewestVersion;
}

export function watchFor<K extends WatchedKind>(options: KindOptions<K>, hooks: KindCacheHooks): Watch<K> {
  return { options, cache: new KindCache(options, hooks), newest: new NewestVersion() };
}
