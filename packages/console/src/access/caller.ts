import { type AccessReviews, MAX_CONCURRENT_REVIEWS_PER_USER, type ResourceAttributes } from './access-reviews.ts';
import type { AuthorizationScope } from './authorization-scope.ts';
import type { AuthenticatedUser } from './user.ts';

/** The user who sent a request, and the user's rights. */
export interface Caller {
  /** The user's name. Null without authentication. */
  readonly name: string | null;
  /** Identifies the user: callers with the same key have the same rights. Empty without authentication. */
  readonly key: string;
  /** Resolves with the user's scope: everything, or those of `namespaces` that the user may view. */
  scopeWithin(namespaces: Iterable<string>): Promise<AuthorizationScope>;
  canViewNamespace(namespace: string): Promise<boolean>;
  canViewFleet(): Promise<boolean>;
  /** Resolves with whether the user may create or delete the Suspension `name`, or any Suspension if `name` is missing. */
  canChangeSuspensions(verb: SuspensionVerb, name?: string): Promise<boolean>;
}

export type SuspensionVerb = 'create' | 'delete';

/**
 * The caller of every request to a console without authentication. This caller may do everything, because such a console accepts only
 * connections from its own machine.
 */
export const ANONYMOUS_CALLER: Caller = {
  name: null,
  key: '',
  scopeWithin: async () => ({ kind: 'all' }),
  canViewNamespace: async () => true,
  canViewFleet: async () => true,
  canChangeSuspensions: async () => true,
};

/**
 * How long a denial is cached for lists. The time is long, because a list needs one check per namespace, and the page reads lists every two
 * seconds. So a new right takes up to a minute to show in lists. Requests that name a namespace use the shorter `DENIED_TTL_MS`.
 */
const DENIED_IN_LIST_TTL_MS = 60_000;

export interface KubernetesCallerOptions {
  readonly reviews: AccessReviews;
  /** The name of the fleet's TenantUsages. A Role with this name in `resourceNames` is valid for this fleet only. */
  readonly fleet: string;
}

/** Creates the caller for a signed-in user. The Roles of the cluster decide the user's rights. */
export function kubernetesCaller(user: AuthenticatedUser, { reviews, fleet }: KubernetesCallerOptions): Caller {
  const usage: ResourceAttributes = { verb: 'get', resource: 'tenantusages', namespace: '', name: fleet };
  const isNamespaceAllowed = (namespace: string): Promise<boolean> => reviews.isAllowed(user, { ...usage, namespace });
  const canViewFleet = (): Promise<boolean> => reviews.isAllowed(user, usage);
  return {
    name: user.name,
    key: user.key,
    canViewFleet,
    canViewNamespace: async (namespace) => (await canViewFleet()) || isNamespaceAllowed(namespace),
    async scopeWithin(namespaces) {
      if (await canViewFleet()) return { kind: 'all' };
      const visible = new Set<string>();
      await forEachConcurrently(namespaces, async (namespace) => {
        if (await reviews.isAllowed(user, { ...usage, namespace }, { deniedTtlMs: DENIED_IN_LIST_TTL_MS }))
          visible.add(namespace);
      });
      return { kind: 'namespaces', namespaces: visible };
    },
    canChangeSuspensions: (verb, name = '') =>
      reviews.isAllowed(user, { verb, resource: 'suspensions', namespace: '', name }),
  };
}

/** Calls `action` for each item, for at most `MAX_CONCURRENT_REVIEWS_PER_USER` items at the same time. Rejects with the first error. */
async function forEachConcurrently<T>(items: Iterable<T>, action: (item: T) => Promise<void>): Promise<void> {
  const remaining = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = remaining.next(); next.done !== true; next = remaining.next()) await action(next.value);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_REVIEWS_PER_USER }, worker));
}
