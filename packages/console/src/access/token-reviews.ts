import { createHash } from 'node:crypto';
import type { Clock } from '@weir/runtime';
import { ApiError } from '../api/api-error.ts';
import type { ApiClient, ApiResponse } from '../kubernetes/api-client.ts';
import { reviewRefusedError, reviewUnavailableError } from '../kubernetes/api-client.ts';
import { SingleFlight, TtlCache } from './review-cache.ts';
import { type AuthenticatedUser, authenticatedUser } from './user.ts';

/** The audience of tokens that the console accepts and the API server rejects (`kubectl create token … --audience`). */
export const TOKEN_AUDIENCE = 'console.weir.dev';

const ACCEPTED_TTL_MS = 30_000;
const REJECTED_TTL_MS = 5_000;
const MAX_CACHED_TOKENS = 4_096;
/**
 * Maximum number of unknown tokens that are reviewed at the same time, so that a flood of invalid tokens does not delay signed-in users.
 */
const MAX_CONCURRENT_UNKNOWN_TOKENS = 16;
const MAX_AUTHORIZATION_HEADER_BYTES = 16 * 1024;
/** Matches an Authorization header with a bearer token (RFC 6750, section 2.1). */
const BEARER = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i;

/** Returns the token of an Authorization header, or undefined if the header contains no bearer token. */
export function bearerToken(header: string | undefined): string | undefined {
  return header === undefined || header.length > MAX_AUTHORIZATION_HEADER_BYTES ? undefined : BEARER.exec(header)?.[1];
}

/** Asks the API server which user a token belongs to (TokenReview) and caches the results by a hash of the token. */
export class TokenReviews {
  readonly #api: ApiClient;
  readonly #acceptedTokens: TtlCache<AuthenticatedUser>;
  readonly #rejectedTokens: TtlCache<true>;
  readonly #knownTokenReviews = new SingleFlight<AuthenticatedUser | undefined>();
  readonly #unknownTokenReviews = new SingleFlight<AuthenticatedUser | undefined>();

  constructor({ api, clock }: { readonly api: ApiClient; readonly clock: Clock }) {
    this.#api = api;
    this.#acceptedTokens = new TtlCache({ clock, maxEntries: MAX_CACHED_TOKENS });
    this.#rejectedTokens = new TtlCache({ clock, maxEntries: MAX_CACHED_TOKENS });
  }

  /**
   * Resolves with the token's user, or undefined if the token is invalid. Throws `ApiError` KubernetesAway if the token cannot be checked
   * now.
   */
  async authenticate(token: string): Promise<AuthenticatedUser | undefined> {
    const key = createHash('sha256').update(token).digest('base64');
    const cached = this.#acceptedTokens.get(key, ACCEPTED_TTL_MS);
    if (cached !== undefined) return cached;
    if (this.#rejectedTokens.get(key, REJECTED_TTL_MS) === true) return undefined;
    if (this.#acceptedTokens.has(key)) return this.#knownTokenReviews.run(key, () => this.#review(key, token));
    if (this.#unknownTokenReviews.size >= MAX_CONCURRENT_UNKNOWN_TOKENS) {
      throw new ApiError('KubernetesAway', 'the console is checking many other tokens; try again in a few seconds');
    }
    return this.#unknownTokenReviews.run(key, () => this.#review(key, token));
  }

  async #review(key: string, token: string): Promise<AuthenticatedUser | undefined> {
    const audiences = claimsConsoleAudience(token) ? [TOKEN_AUDIENCE] : undefined;
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audiences === undefined ? {} : { audiences }) },
    };
    const response = await this.#api
      .send({ method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body: review })
      .catch((error) => Promise.reject(reviewUnavailableError('your token', error)));
    if (response.status !== 201) throw reviewRefusedError('tokenreviews.authentication.k8s.io', response);
    const user = userFromReview(response, audiences);
    if (user === undefined) {
      this.#acceptedTokens.delete(key);
      this.#rejectedTokens.set(key, true);
    } else this.#acceptedTokens.set(key, user);
    return user;
  }
}

interface TokenReviewStatus {
  readonly authenticated?: boolean;
  readonly audiences?: readonly string[];
  readonly user?: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
}

function userFromReview(
  { body }: ApiResponse,
  audiences: readonly string[] | undefined,
): AuthenticatedUser | undefined {
  const {
    authenticated,
    audiences: valid = [],
    user,
  } = (body as { status?: TokenReviewStatus } | undefined)?.status ?? {};
  if (authenticated !== true || !user?.username) return undefined;
  // An API server without support for audiences returns no audiences. The token is then valid only for the API server, so the console
  // refuses it.
  if (audiences !== undefined && !audiences.some((audience) => valid.includes(audience))) return undefined;
  const { username: name, uid = '', groups = [], extra = {} } = user;
  return authenticatedUser({ name, uid, groups, extra });
}

/**
 * Whether the token claims the console's audience. The claim is not verified here: it only chooses the audience of the review, in which the
 * API server verifies the token.
 */
function claimsConsoleAudience(token: string): boolean {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return [claims.aud].flat().includes(TOKEN_AUDIENCE);
  } catch {
    return false;
  }
}
