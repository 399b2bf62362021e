import type { Clock } from '@weir/runtime';
import { type ApiClient, reviewRefusedError, reviewUnavailableError } from '../kubernetes/api-client.ts';
import { SingleFlight, TtlCache } from './review-cache.ts';
import type { AuthenticatedUser } from './user.ts';

/** A right on a resource of the API group `weir.dev`. */
export interface ResourceAttributes {
  readonly verb: string;
  readonly resource: string;
  /** Empty for a right in all namespaces and for a right on a cluster-scoped resource. */
  readonly namespace: string;
  readonly name: string;
}

const ALLOWED_TTL_MS = 30_000;
const DENIED_TTL_MS = 10_000;
/** Maximum number of cached decisions. A user has about one decision per namespace, and a decision takes about 200 bytes. */
const MAX_CACHED_DECISIONS = 65_536;
/** Maximum number of reviews that run at the same time for one user, so that one user cannot occupy all connections to the API server. */
export const MAX_CONCURRENT_REVIEWS_PER_USER = 8;

/** Asks the API server what a user may do (SubjectAccessReview) and caches the results. */
export class AccessReviews {
  readonly #api: ApiClient;
  readonly #decisions: TtlCache<boolean>;
  readonly #pendingReviews = new SingleFlight<boolean>();
  readonly #reviewsPerUser = new KeyedSemaphore(MAX_CONCURRENT_REVIEWS_PER_USER);

  constructor({ api, clock }: { readonly api: ApiClient; readonly clock: Clock }) {
    this.#api = api;
    this.#decisions = new TtlCache({ clock, maxEntries: MAX_CACHED_DECISIONS });
  }

  /**
   * Resolves with whether the user has the right. Caches a denial for `deniedTtlMs`. Throws `ApiError` KubernetesAway if the review fails.
   */
  async isAllowed(
    user: AuthenticatedUser,
    right: ResourceAttributes,
    { deniedTtlMs = DENIED_TTL_MS }: { readonly deniedTtlMs?: number } = {},
  ): Promise<boolean> {
    const key = `${user.key} ${right.verb} ${right.resource} ${right.namespace}/${right.name}`;
    if (this.#decisions.get(key, ALLOWED_TTL_MS) === true) return true;
    if (this.#decisions.get(key, deniedTtlMs) === false) return false;
    return this.#pendingReviews.run(key, () =>
      this.#reviewsPerUser.run(user.key, () => this.#review(key, user, right)),
    );
  }

  async #review(key: string, user: AuthenticatedUser, right: ResourceAttributes): Promise<boolean> {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: user.name,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        resourceAttributes: { group: 'weir.dev', version: 'v1alpha1', ...right },
      },
    };
    const response = await this.#api
      .send({ method: 'POST', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews', body: review })
      .catch((error) => Promise.reject(reviewUnavailableError('your rights', error)));
    if (response.status !== 201) throw reviewRefusedError('subjectaccessreviews.authorization.k8s.io', response);
    const { status } = response.body as { status?: { allowed?: boolean } };
    const isAllowed = status?.allowed === true;
    this.#decisions.set(key, isAllowed);
    return isAllowed;
  }
}

/** Runs at most `maxPerKey` tasks per key at the same time, so that the tasks of one key do not delay tasks of other keys. */
export class KeyedSemaphore {
  readonly #maxPerKey: number;
  readonly #slotsByKey = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(maxPerKey: number) {
    this.#maxPerKey = maxPerKey;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const slots = this.#slotsByKey.get(key) ?? { running: 0, waiting: [] };
    this.#slotsByKey.set(key, slots);
    if (slots.running < this.#maxPerKey) slots.running += 1;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
    try {
      return await work();
    } finally {
      // A finished task passes its slot to the next waiting task, so `running` does not change.
      const next = slots.waiting.shift();
      if (next !== undefined) next();
      else {
        slots.running -= 1;
        if (slots.running === 0) this.#slotsByKey.delete(key);
      }
    }
  }
}
