// What a user may do: the API server is asked (SubjectAccessReview), so that a Role or a ClusterRole of the cluster's own decides.
import type { Clock } from '@weir/runtime';
import type { ApiConnection } from '../kubernetes/api-connection.ts';
import { AnswerCache } from './answer-cache.ts';
import { refusedReview, reviewAway } from './api-server-away.ts';
import { SingleFlight } from './single-flight.ts';
import { Turns } from './turns.ts';
import type { KnownUser } from './user.ts';

export interface Right {
  readonly verb: string;
  readonly resource: string;
  /** Empty: in every namespace, and of what has none. */
  readonly namespace: string;
  readonly name: string;
}

const ALLOWED_FOR_MS = 30_000;
const DENIED_FOR_MS = 10_000;
/** Users times namespaces, of about 200 bytes. */
const MOST_KEPT = 65_536;
/** Of the connections to the API server, which all share. */
export const AT_ONCE_OF_ONE = 8;

export class AccessReviews {
  readonly #api: ApiConnection;
  readonly #kept: AnswerCache<boolean>;
  readonly #asking = new SingleFlight<boolean>();
  readonly #turns = new Turns(AT_ONCE_OF_ONE);

  constructor({ api, clock }: { readonly api: ApiConnection; readonly clock: Clock }) {
    this.#api = api;
    this.#kept = new AnswerCache({ clock, most: MOST_KEPT });
  }

  /** `ApiError` KubernetesAway when it cannot be told now. A denial is kept for `deniedForMs`. */
  async isAllowed(user: KnownUser, right: Right, deniedForMs: number = DENIED_FOR_MS): Promise<boolean> {
    const key = `${user.key} ${right.verb} ${right.resource} ${right.namespace}/${right.name}`;
    if (this.#kept.get(key, ALLOWED_FOR_MS) === true) return true;
    if (this.#kept.get(key, deniedForMs) === false) return false;
    return this.#asking.ask(key, () => this.#turns.take(user.key, () => this.#ask(key, user, right)));
  }

  async #ask(key: string, user: KnownUser, right: Right): Promise<boolean> {
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
      .catch((error) => Promise.reject(reviewAway('what you may do', error)));
    if (answer.status !== 201) throw refusedReview('subjectaccessreviews.authorization.k8s.io', answer);
    const { status } = answer.body as { status?: { allowed?: boolean } };
    const isAllowed = status?.allowed === true;
    this.#kept.set(key, isAllowed);
    return isAllowed;
  }
}
