import { type AccessReviews, MAX_CONCURRENT_REVIEWS_PER_USER, type ResourceAttributes } from './access-reviews.ts';
import type { AuthorizationScope } from './authorization-scope.ts';
import type { AuthenticatedUser } from './user.ts';

/** Whoever sent a request, and what the rights are. */
export interface Caller {
  /** Null: nobody was asked who they are. */
  readonly name: string | null;
  /** Equal for the same person, also of two requests. */
  readonly key: string;
  /** What can be seen, of these namespaces. */
  scopeWithin(namespaces: Iterable<string>): Promise<AuthorizationScope>;
  canViewNamespace(namespace: string): Promise<boolean>;
  canViewFleet(): Promise<boolean>;
  /** Whether Suspensions (or the one of this name) may be made or lifted. */
  canChangeSuspensions(verb: SuspensionVerb, name?: string): Promise<boolean>;
}

export type SuspensionVerb = 'create' | 'delete';

/** Without authentication: whoever reaches this console is on this machine. */
export const ANONYMOUS_CALLER: Caller = {
  name: null,
  key: '',
  scopeWithin: async () => ({ kind: 'all' }),
  canViewNamespace: async () => true,
  canViewFleet: async () => true,
  canChangeSuspensions: async () => true,
};

/**
 * A list asks of every namespace of the fleet, a page does so every two seconds. Whoever is let in anew sees it in lists within a
 * minute, and at once where the namespace is named.
 */
const DENIED_IN_LIST_TTL_MS = 60_000;

export interface KubernetesCallerOptions {
  readonly reviews: AccessReviews;
  /** The TenantUsages of a fleet are called so, in each namespace: a Role that names one is for this fleet alone. */
  readonly fleet: string;
}

/** Somebody with a name, whose rights are those of the cluster. */
export function kubernetesCaller(user: AuthenticatedUser, { reviews, fleet }: KubernetesCallerOptions): Caller {
  const usage: ResourceAttributes = { verb: 'get', resource: 'tenantusages', namespace: '', name: fleet };
  const sees = (namespace: string): Promise<boolean> => reviews.isAllowed(user, { ...usage, namespace });
  const canViewFleet = (): Promise<boolean> => reviews.isAllowed(user, usage);
  return {
    name: user.name,
    key: user.key,
    canViewFleet,
    canViewNamespace: async (namespace) => (await canViewFleet()) || sees(namespace),
    async scopeWithin(namespaces) {
      if (await canViewFleet()) return { kind: 'all' };
      const seen = new Set<string>();
      await forEachConcurrently(namespaces, async (namespace) => {
        if (await reviews.isAllowed(user, { ...usage, namespace }, DENIED_IN_LIST_TTL_MS)) seen.add(namespace);
      });
      return { kind: 'namespaces', namespaces: seen };
    },
    canChangeSuspensions: (verb, name = '') =>
      reviews.isAllowed(user, { verb, resource: 'suspensions', namespace: '', name }),
  };
}

/** Some at a time: when one cannot be told, no more is asked. */
async function forEachConcurrently<T>(items: Iterable<T>, ask: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const asker = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) await ask(next.value);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_REVIEWS_PER_USER }, asker));
}
