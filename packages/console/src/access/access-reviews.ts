import type { Clock } from '@weir/runtime';
import { type ApiClient, reviewRefusedError, reviewUnavailableError } from '../kubernetes/api-client.ts';
import { SingleFlight, TtlCache } from './review-cache.ts';
import type { AuthenticatedUser } from './user.ts';

// What a user may do: the API server is asked (SubjectAccessReview), so that a Role or a ClusterRole of the cluster's own decides.
export interface ResourceAttributes {
  readonly verb: string;
  readonly resource: string;
  /** Empty: in every namespace, and of what has none. */
  readonly namespace: string;
  readonly name: string;
}

const ALLOWED_TTL_MS = 30_000;
const DENIED_TTL_MS = 10_000;
/** Users times namespaces, of about 200 bytes. */
const MAX_CACHED_DECISIONS = 65_536;
/** Of the connections to the API server, which all share. */
export const MAX_CONCURRENT_REVIEWS_PER_USER = 8;

export class AccessReviews {
  readonly #api: ApiClient;
  readonly #decisions: TtlCache<boolean>;
  readonly #pendingReviews = new SingleFlight<boolean>();
  readonly #reviewsPerUser = new KeyedSemaphore(MAX_CONCURRENT_REVIEWS_PER_USER);

  constructor({ api, clock }: { readonly api: ApiClient; readonly clock: Clock }) {
    this.#api = api;
    this.#decisions = new TtlCache({ clock, maxEntries: MAX_CACHED_DECISIONS });
  }

  /** `ApiError` KubernetesAway when it cannot be told now. A denial is kept for `deniedForMs`. */
  async isAllowed(
    user: AuthenticatedUser,
    right: ResourceAttributes,
    deniedForMs: number = DENIED_TTL_MS,
  ): Promise<boolean> {
    const key = `${user.key} ${right.verb} ${right.resource} ${right.namespace}/${right.name}`;
    if (this.#decisions.get(key, ALLOWED_TTL_MS) === true) return true;
    if (this.#decisions.get(key, deniedForMs) === false) return false;
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
    const answer = await this.#api
      .send('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)
      .catch((error) => Promise.reject(reviewUnavailableError('what you may do', error)));
    if (answer.status !== 201) throw reviewRefusedError('subjectaccessreviews.authorization.k8s.io', answer);
    const { status } = answer.body as { status?: { allowed?: boolean } };
    const isAllowed = status?.allowed === true;
    this.#decisions.set(key, isAllowed);
    return isAllowed;
  }
}

/** So many at a time of one key; the others wait their turn. One user's thousand questions do not keep another's waiting. */
export class KeyedSemaphore {
  readonly #maxPerKey: number;
  readonly #slotsByKey = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(most: number) {
    this.#maxPerKey = most;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const own = this.#slotsByKey.get(key) ?? { running: 0, waiting: [] };
    this.#slotsByKey.set(key, own);
    if (own.running < this.#maxPerKey) own.running += 1;
    // Whoever ends hands its place on.
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = own.waiting.shift();
      if (next !== undefined) next();
      else {
        own.running -= 1;
        if (own.running === 0) this.#slotsByKey.delete(key);
      }
    }
  }
}
