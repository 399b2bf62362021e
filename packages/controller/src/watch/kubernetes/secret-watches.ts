import type { SecretAccess, SecretObject } from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { parseSecret } from '../../parse/secret.ts';
import type { KindCacheHooks } from './kind-cache.ts';
import { createKindWatch, type KindWatch } from './kind-cache.ts';
import type { WatchedKindOptions } from './watched-kinds.ts';

export interface ReadableSecrets {
  readonly access: SecretAccess;
  readonly sealer: Sealer;
}

/** Watches the readable Secrets: one watch for the cluster, or one watch per namespace. */
export class SecretWatches {
  readonly watches: readonly KindWatch<'Secret'>[];
  #listsByWatch: readonly (readonly SecretObject[])[] = [];
  #list: readonly SecretObject[] | undefined;
  #unreadableNamespaces: ReadonlySet<string> = new Set();

  constructor({ access, sealer }: ReadableSecrets, hooks: KindCacheHooks) {
    const parse: WatchedKindOptions<'Secret'>['parse'] = (raw) => parseSecret(raw, sealer);
    this.watches = secretKindsFor(access).map((kind) => createKindWatch({ ...kind, parse }, hooks));
  }

  /** Returns the sorted Secrets; undefined if no Secrets may be read. The list is the same object until a Secret changes. */
  list(): readonly SecretObject[] | undefined {
    const lists = this.watches.map(({ cache }) => cache.list());
    if (lists.length <= 1) return lists[0];
    if (this.#list === undefined || lists.some((list, index) => list !== this.#listsByWatch[index])) {
      this.#listsByWatch = lists;
      this.#list = Object.freeze(lists.flat());
    }
    return this.#list;
  }

  /** Returns the value of `Snapshot.unreadableSecrets`. As long as the namespaces do not change, each call returns the same `Set`. */
  unreadableNamespaces(): 'everywhere' | ReadonlySet<string> | undefined {
    const unreadable = this.watches.filter(({ cache }) => cache.isUnreadable);
    if (unreadable.length === 0) return undefined;
    const namespaces = unreadable.flatMap(({ options }) => options.namespace ?? []);
    if (namespaces.length === 0) return 'everywhere';
    const isSame =
      namespaces.length === this.#unreadableNamespaces.size &&
      namespaces.every((each) => this.#unreadableNamespaces.has(each));
    if (!isSame) this.#unreadableNamespaces = new Set(namespaces);
    return this.#unreadableNamespaces;
  }
}

/**
 * Types of Secrets that never hold a certificate. Secrets of these types are not read, because the controller needs none of their contents,
 * and Helm's releases would need most of the memory. The type of a Secret never changes.
 */
const IGNORED_SECRET_TYPES = [
  'helm.sh/release.v1',
  'kubernetes.io/service-account-token',
  'kubernetes.io/dockercfg',
  'kubernetes.io/dockerconfigjson',
  'bootstrap.kubernetes.io/token',
];

/** The number of Secrets per page of a list. Pages are small, because a Secret may have 1 MiB and any tenant may create many Secrets. */
const SECRETS_PAGE_SIZE = 50;

const SECRETS_KIND = {
  resource: 'secrets',
  query: { fieldSelector: IGNORED_SECRET_TYPES.map((type) => `type!=${type}`).join(',') },
  pageSize: SECRETS_PAGE_SIZE,
  isExpensiveToParse: true,
  isWeirResource: false,
  onForbidden: 'fallback',
} as const;

const EFFECT_UNTIL_READABLE = 'keep their certificates, and new certificates are not used';

function secretKindsFor(access: SecretAccess): readonly Omit<WatchedKindOptions<'Secret'>, 'parse'>[] {
  switch (access.kind) {
    case 'none':
      return [];
    case 'cluster':
      return [
        {
          ...SECRETS_KIND,
          path: '/api/v1/secrets',
          effectUntilReadable: `Services ${EFFECT_UNTIL_READABLE}`,
          grantedBy: 'the chart grants with tls.secretAccess=cluster',
        },
      ];
    case 'namespaces':
      return [...new Set(access.namespaces)].sort().map((namespace) => ({
        ...SECRETS_KIND,
        namespace,
        path: `/api/v1/namespaces/${namespace}/secrets`,
        effectUntilReadable: `Services in namespace ${namespace} ${EFFECT_UNTIL_READABLE}`,
        grantedBy: `the chart grants with tls.secretAccess=namespaces for the namespaces in tls.secretNamespaces`,
      }));
  }
}
