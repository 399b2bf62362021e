import { type ConfigMapObject, configMapsOf, type ServiceObject, type Snapshot, serviceSettingsFor } from '@weir/model';
import { parseConfigMap } from '../../parse/config-map.ts';
import { createKindWatch, type KindCacheHooks, type KindWatch } from './kind-cache.ts';
import type { WatchedKindOptions } from './watched-kinds.ts';

/** The watch of one ConfigMap. `ending` ends the watch. */
export interface ConfigMapWatch extends KindWatch<'ConfigMap'> {
  readonly ending: AbortController;
}

type UnreadConfigMaps = NonNullable<Snapshot['unreadConfigMaps']>;

/** The maximum number of ConfigMaps that are watched in one namespace, because each has a watch of its own. */
const MAX_CONFIG_MAPS_PER_NAMESPACE = 64;
const ANNOTATIONS = ['weir.dev/error-pages', 'weir.dev/backend-tls-ca'];

/** Watches the ConfigMaps that Services name, each by its name, so that no other ConfigMap is read. */
export class ConfigMapWatches {
  readonly #isOwned: (service: ServiceObject) => boolean;
  readonly #hooks: KindCacheHooks;
  /** By path (`namespace/name`). */
  readonly #watches = new Map<string, ConfigMapWatch>();
  /** The paths of the ConfigMaps that are not watched because of `MAX_CONFIG_MAPS_PER_NAMESPACE`. */
  readonly #excess = new Set<string>();
  /** The Services that name a ConfigMap, by the path of the ConfigMap. */
  #servicesByPath: ReadonlyMap<string, readonly ServiceObject[]> = new Map();
  #services: readonly ServiceObject[] = [];
  #lists: readonly (readonly ConfigMapObject[])[] = [];
  #list: readonly ConfigMapObject[] = [];

  constructor(isOwned: (service: ServiceObject) => boolean, hooks: KindCacheHooks) {
    this.#isOwned = isOwned;
    this.#hooks = hooks;
  }

  get watches(): readonly ConfigMapWatch[] {
    return [...this.#watches.values()];
  }

  /** Ends the watches of ConfigMaps that no Service names any more. Returns the new watches, which the caller starts. */
  update(services: readonly ServiceObject[]): readonly ConfigMapWatch[] {
    if (services === this.#services) return [];
    this.#services = services;
    this.#servicesByPath = this.#findNamed(services);
    this.#excess.clear();
    const wanted = new Map<string, readonly [namespace: string, name: string]>();
    // Watched ConfigMaps come first, so that a new ConfigMap above the maximum replaces no other.
    const isNew = (path: string): number => Number(!this.#watches.has(path));
    const paths = [...this.#servicesByPath.keys()].sort((a, b) => isNew(a) - isNew(b) || (a < b ? -1 : 1));
    const counts = new Map<string, number>();
    for (const path of paths) {
      const [namespace = '', name = ''] = path.split('/');
      const count = counts.get(namespace) ?? 0;
      counts.set(namespace, count + 1);
      if (count < MAX_CONFIG_MAPS_PER_NAMESPACE) wanted.set(path, [namespace, name]);
      else this.#excess.add(path);
    }
    for (const [path, { ending }] of this.#watches) {
      if (wanted.has(path)) continue;
      this.#watches.delete(path);
      ending.abort();
    }
    const added: ConfigMapWatch[] = [];
    for (const [path, [namespace, name]] of wanted) {
      if (this.#watches.has(path)) continue;
      const watch = { ...createKindWatch(configMapKind(namespace, name), this.#hooks), ending: new AbortController() };
      this.#watches.set(path, watch);
      added.push(watch);
    }
    return added;
  }

  /** Returns the ConfigMaps that exist. The list is the same object until a ConfigMap changes. */
  list(): readonly ConfigMapObject[] {
    const lists = this.watches.map(({ cache }) => cache.list());
    if (lists.length !== this.#lists.length || lists.some((list, index) => list !== this.#lists[index])) {
      this.#lists = lists;
      this.#list = Object.freeze(lists.flat());
    }
    return this.#list;
  }

  /** Returns the value of `Snapshot.unreadConfigMaps`. */
  unread(): UnreadConfigMaps | undefined {
    const unread = new Map<string, 'waiting' | 'forbidden' | 'too-many'>();
    for (const path of this.#excess) unread.set(path, 'too-many');
    for (const [path, { cache }] of this.#watches) {
      if (cache.isUnreadable) unread.set(path, 'forbidden');
      else if (!cache.isSynced) unread.set(path, 'waiting');
    }
    return unread.size === 0 ? undefined : unread;
  }

  /** Returns the Services that name a ConfigMap that is being read for the first time. */
  waitingServices(): ReadonlySet<ServiceObject> {
    const waiting = new Set<ServiceObject>();
    for (const [path, { cache }] of this.#watches) {
      if (cache.isSynced || cache.isCurrent) continue;
      for (const service of this.#servicesByPath.get(path) ?? []) waiting.add(service);
    }
    return waiting;
  }

  #findNamed(services: readonly ServiceObject[]): ReadonlyMap<string, readonly ServiceObject[]> {
    const found = new Map<string, ServiceObject[]>();
    for (const service of services) {
      // Parses only the settings of Services that may name a ConfigMap, because only `parseSettingsInTurns` may parse many settings.
      if (!ANNOTATIONS.some((name) => Object.hasOwn(service.annotations, name)) || !this.#isOwned(service)) continue;
      const parsed = serviceSettingsFor(service);
      for (const name of configMapsOf(parsed.kind === 'settings' ? parsed.settings : undefined)) {
        const path = `${service.namespace}/${name}`;
        const naming = found.get(path) ?? [];
        naming.push(service);
        found.set(path, naming);
      }
    }
    return found;
  }
}

function configMapKind(namespace: string, name: string): WatchedKindOptions<'ConfigMap'> {
  return {
    resource: 'configmaps',
    namespace,
    objectName: name,
    path: `/api/v1/namespaces/${namespace}/configmaps`,
    query: { fieldSelector: `metadata.name=${name}` },
    isWeirResource: false,
    isExpensiveToParse: true,
    onForbidden: 'fallback',
    effectUntilReadable: 'Services keep their error pages and CAs, and new ones are not used',
    parse: parseConfigMap,
  };
}
