import { type AccessReviews, AT_ONCE_OF_ONE, type Right } from './access-reviews.ts';
import type { Caller } from './caller.ts';
import type { KnownUser } from './user.ts';

/**
 * A list asks of every namespace of the fleet, a page does so every two seconds. Whoever is let in anew sees it in lists within a
 * minute, and at once where the namespace is named.
 */
const DENIED_IN_LISTS_FOR_MS = 60_000;

export interface KubernetesCallerOptions {
  readonly reviews: AccessReviews;
  /** The TenantUsages of a fleet are called so, in each namespace: a Role that names one is for this fleet alone. */
  readonly fleet: string;
}

/** Somebody with a name, whose rights are those of the cluster. */
export function kubernetesCaller(user: KnownUser, { reviews, fleet }: KubernetesCallerOptions): Caller {
  const usage: Right = { verb: 'get', resource: 'tenantusages', namespace: '', name: fleet };
  const sees = (namespace: string): Promise<boolean> => reviews.isAllowed(user, { ...usage, namespace });
  const seesAll = (): Promise<boolean> => reviews.isAllowed(user, usage);
  return {
    name: user.name,
    key: user.key,
    seesAll,
    sees: async (namespace) => (await seesAll()) || sees(namespace),
    async sight(namespaces) {
      if (await seesAll()) return { kind: 'all' };
      const seen = new Set<string>();
      await each(namespaces, async (namespace) => {
        if (await reviews.isAllowed(user, { ...usage, namespace }, DENIED_IN_LISTS_FOR_MS)) seen.add(namespace);
      });
      return { kind: 'namespaces', namespaces: seen };
    },
    may: (verb, name = '') => reviews.isAllowed(user, { verb, resource: 'suspensions', namespace: '', name }),
  };
}

/** Some at a time: when one cannot be told, no more is asked. */
async function each<T>(items: Iterable<T>, ask: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const asker = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) await ask(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE_OF_ONE }, asker));
}
