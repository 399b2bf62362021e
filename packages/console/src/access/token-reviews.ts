// Who a bearer token is: the API server is asked (TokenReview), and its answer kept for a short while under a hash of the token.
import { createHash } from 'node:crypto';
import type { Clock } from '@weir/runtime';
import { ApiError } from '../api/api-error.ts';
import type { ApiAnswer, ApiConnection } from '../kubernetes/api-connection.ts';
import { AnswerCache } from './answer-cache.ts';
import { refusedReview, reviewAway } from './api-server-away.ts';
import { SingleFlight } from './single-flight.ts';
import { type KnownUser, knownUser } from './user.ts';

/** Tokens made for the console alone (`kubectl create token … --audience`): the API server itself does not take them. */
export const AUDIENCE = 'console.weir.dev';

const GOOD_FOR_MS = 30_000;
const BAD_FOR_MS = 5_000;
const MOST_KEPT = 4_096;
/** Strangers' tokens that are asked about at a time: a flood of them does not keep those out who are signed in. */
const MOST_STRANGERS = 16;
const LONGEST_TOKEN = 16 * 1024;
/** RFC 6750, section 2.1. */
const BEARER = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i;

/** The token of an Authorization header; undefined when it holds none. */
export function bearerToken(header: string | undefined): string | undefined {
  return header === undefined || header.length > LONGEST_TOKEN ? undefined : BEARER.exec(header)?.[1];
}

export class TokenReviews {
  readonly #api: ApiConnection;
  readonly #good: AnswerCache<KnownUser>;
  readonly #bad: AnswerCache<true>;
  readonly #known = new SingleFlight<KnownUser | undefined>();
  readonly #strangers = new SingleFlight<KnownUser | undefined>();

  constructor({ api, clock }: { readonly api: ApiConnection; readonly clock: Clock }) {
    this.#api = api;
    this.#good = new AnswerCache({ clock, most: MOST_KEPT });
    this.#bad = new AnswerCache({ clock, most: MOST_KEPT });
  }

  /** Undefined: the token is nobody's. `ApiError` KubernetesAway when that cannot be told now. */
  async userOf(token: string): Promise<KnownUser | undefined> {
    const key = createHash('sha256').update(token).digest('base64');
    const kept = this.#good.get(key, GOOD_FOR_MS);
    if (kept !== undefined) return kept;
    if (this.#bad.get(key, BAD_FOR_MS) === true) return undefined;
    if (this.#good.has(key)) return this.#known.ask(key, () => this.#ask(key, token));
    if (this.#strangers.size >= MOST_STRANGERS) {
      throw new ApiError('KubernetesAway', 'many tokens are being checked just now; try again in a moment');
    }
    return this.#strangers.ask(key, () => this.#ask(key, token));
  }

  async #ask(key: string, token: string): Promise<KnownUser | undefined> {
    const audiences = isForUs(token) ? [AUDIENCE] : undefined;
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audiences === undefined ? {} : { audiences }) },
    };
    const answer = await this.#api
      .send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review)
      .catch((error) => Promise.reject(reviewAway('who you are', error)));
    if (answer.status !== 201) throw refusedReview('tokenreviews.authentication.k8s.io', answer);
    const user = userIn(answer, audiences);
    if (user === undefined) {
      this.#good.delete(key);
      this.#bad.set(key, true);
    } else this.#good.set(key, user);
    return user;
  }
}

interface ReviewStatus {
  readonly authenticated?: boolean;
  readonly audiences?: readonly string[];
  readonly user?: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
}

function userIn({ body }: ApiAnswer, audiences: readonly string[] | undefined): KnownUser | undefined {
  const { authenticated, audiences: valid = [], user } = (body as { status?: ReviewStatus } | undefined)?.status ?? {};
  if (authenticated !== true || !user?.username) return undefined;
  // An API server that knows nothing of audiences names none: then the token is one of its own, not one for us.
  if (audiences !== undefined && !audiences.some((each) => valid.includes(each))) return undefined;
  const { username: name, uid = '', groups = [], extra = {} } = user;
  return knownUser({ name, uid, groups, extra });
}

/** What a token says of itself only chooses the question; the API server answers it. */
function isForUs(token: string): boolean {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return [claims.aud].flat().includes(AUDIENCE);
  } catch {
    return false;
  }
}
