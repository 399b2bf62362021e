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

/** The Secrets that may be read: all of the cluster, or those of some namespaces, each watched for itself. */
export class SecretWatches {
  readonly watches: readonly KindWatch<'Secret'>[];
  #parts: readonly (readonly SecretObject[])[] = [];
  #list: readonly SecretObject[] | undefined;
  #unreadableNamespaces: ReadonlySet<string> = new Set();

  constructor({ access, sealer }: ReadableSecrets, hooks: KindCacheHooks) {
    const project: WatchedKindOptions<'Secret'>['project'] = (raw) => parseSecret(raw, sealer);
    this.watches = secretKindsFor(access).map((kind) => createKindWatch({ ...kind, project }, hooks));
  }

  /** Sorted, and the same list until one changes; undefined: none may be read. */
  list(): readonly SecretObject[] | undefined {
    const parts = this.watches.map(({ cache }) => cache.list());
    if (parts.length <= 1) return parts[0];
    if (this.#list === undefined || parts.some((part, index) => part !== this.#parts[index])) {
      this.#parts = parts;
      this.#list = Object.freeze(parts.flat());
    }
    return this.#list;
  }

  /** As in `Snapshot`, and the same until it changes. */
  unreadableNamespaces(): 'everywhere' | ReadonlySet<string> | undefined {
    const unread = this.watches.filter(({ cache }) => cache.isUnreadable);
    if (unread.length === 0) return undefined;
    const namespaces = unread.flatMap(({ options }) => options.namespace ?? []);
    if (namespaces.length === 0) return 'everywhere';
    const isSame =
      namespaces.length === this.#unreadableNamespaces.size &&
      namespaces.every((each) => this.#unreadableNamespaces.has(each));
    if (!isSame) this.#unreadableNamespaces = new Set(namespaces);
    return this.#unreadableNamespaces;
  }
}

/**
 * Never a certificate, and long: what helm keeps of its releases is most of what there is. Besides, whatever is not read cannot be lost.
 * The type of a Secret never changes.
 */
const IGNORED_SECRET_TYPES = [
  'helm.sh/release.v1',
  'kubernetes.io/service-account-token',
  'kubernetes.io/dockercfg',
  'kubernetes.io/dockerconfigjson',
  'bootstrap.kubernetes.io/token',
];

/** One of them may have a mebibyte, and anybody may write many. */
const SECRETS_PAGE_SIZE = 50;

const SECRETS_KIND = {
  resource: 'secrets',
  query: { fieldSelector: IGNORED_SECRET_TYPES.map((type) => `type!=${type}`).join(',') },
  pageSize: SECRETS_PAGE_SIZE,
  isCostly: true,
  isOurs: false,
  whenForbidden: 'table',
} as const;

const MEANWHILE = 'Services go on with the certificates that they have, and new ones are not served';

function secretKindsFor(access: SecretAccess): readonly Omit<WatchedKindOptions<'Secret'>, 'project'>[] {
  switch (access.kind) {
    case 'none':
      return [];
    case 'cluster':
      return [
        {
          ...SECRETS_KIND,
          path: '/api/v1/secrets',
          meanwhile: MEANWHILE,
          grant: 'the chart grants with tls.secretAccess=cluster',
        },
      ];
    case 'namespaces':
      return [...new Set(access.namespaces)].sort().map((namespace) => ({
        ...SECRETS_KIND,
        namespace,
        path: `/api/v1/namespaces/${namespace}/secrets`,
        meanwhile: `in namespace ${namespace} ${MEANWHILE}`,
        grant: `the chart grants with tls.secretAccess=namespaces for each of tls.secretNamespaces`,
      }));
  }
}
