import { objectPath } from '../certificate-validity.ts';
import { diffLists } from '../compare.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ConfigMapObject, ServiceObject, Snapshot } from '../snapshot.ts';
import { type ErrorPagesEntry, errorPagesId } from '../table/entry.ts';

type ConfigMapInput = Pick<Snapshot, 'configMaps' | 'unreadConfigMaps'>;
type UnreadReason = 'waiting' | 'forbidden' | 'too-many';

/** The error pages of a Service. `message` says why the pages in the ConfigMap are not used. */
export interface ErrorPagesResult {
  /** Null for Weir's own pages; `last` if the pages of the last table stay, because the ConfigMap is not read. */
  readonly pages: ErrorPagesEntry | null | 'last';
  readonly message: string | undefined;
}

const NO_CONFIG_MAPS: readonly ConfigMapObject[] = [];
const NO_UNREAD: ReadonlyMap<string, UnreadReason> = new Map();
const OWN_PAGES: ErrorPagesResult = { pages: null, message: undefined };

/** Holds the ConfigMaps of a snapshot by path. */
export class ConfigMapIndex {
  readonly #byPath = new Map<string, ConfigMapObject>();
  #configMaps = NO_CONFIG_MAPS;
  #unread = NO_UNREAD;

  /** Applies the ConfigMaps of a new snapshot. Returns the path (`namespace/name`) of each ConfigMap that changed. */
  update({ configMaps = NO_CONFIG_MAPS, unreadConfigMaps = NO_UNREAD }: ConfigMapInput): ReadonlySet<string> {
    const paths = new Set<string>();
    const { removed, added } = diffLists(this.#configMaps, configMaps);
    for (const { namespace, name } of removed) {
      this.#byPath.delete(objectPath(namespace, name));
      paths.add(objectPath(namespace, name));
    }
    for (const configMap of added) {
      const path = objectPath(configMap.namespace, configMap.name);
      this.#byPath.set(path, configMap);
      paths.add(path);
    }
    for (const path of new Set([...unreadConfigMaps.keys(), ...this.#unread.keys()]))
      if (unreadConfigMaps.get(path) !== this.#unread.get(path)) paths.add(path);
    this.#configMaps = configMaps;
    this.#unread = unreadConfigMaps;
    return paths;
  }

  find(namespace: string, name: string): ConfigMapObject | undefined {
    return this.#byPath.get(objectPath(namespace, name));
  }

  /** Returns why a ConfigMap is not read, such as `cannot be read: …`. Undefined if it was read, or does not exist. */
  unreadText(namespace: string, name: string): string | undefined {
    switch (this.#unread.get(objectPath(namespace, name))) {
      case undefined:
        return undefined;
      case 'waiting':
        return 'was not read yet';
      case 'forbidden':
        return 'cannot be read: the controller lacks the permission; ask the operator ("weir get problems" names the permission)';
      case 'too-many':
        return `is not read, because the Services of namespace "${namespace}" name too many ConfigMaps; use the same ConfigMap in several Services`;
    }
  }

  /** Returns the error pages that the settings ask for. */
  errorPagesFor({ uid, namespace }: ServiceObject, { errorPages: name }: ServiceSettings): ErrorPagesResult {
    if (name === undefined) return OWN_PAGES;
    const subject = `ConfigMap "${name}" of annotation weir.dev/error-pages`;
    const isWaiting = this.#unread.get(objectPath(namespace, name)) === 'waiting';
    const unread = this.unreadText(namespace, name);
    if (unread !== undefined) return { pages: 'last', message: isWaiting ? undefined : `${subject} ${unread}` };
    const found = this.find(namespace, name)?.errorPages;
    const meanwhile = 'until then, clients get the error pages of Weir';
    if (found === undefined)
      return {
        pages: null,
        message: `${subject} does not exist in namespace "${namespace}"; create it: kubectl create configmap ${name} --from-file=DIRECTORY -n ${namespace}; ${meanwhile}`,
      };
    if (found.kind === 'unusable')
      return { pages: null, message: `${subject} ${found.why}; correct the ConfigMap; ${meanwhile}` };
    const { pages } = found;
    return { pages: { kind: 'error-pages', id: errorPagesId(uid), service: uid, pages }, message: undefined };
  }
}
