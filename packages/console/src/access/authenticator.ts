// Who sent a request.
import type { IncomingMessage } from 'node:http';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock, Logger } from '@weir/runtime';
import { FrontProxy, forwardedUser } from '../aggregation/front-proxy.ts';
import { ApiError } from '../api/api-error.ts';
import { ApiClient } from '../kubernetes/api-client.ts';
import { AccessReviews } from './access-reviews.ts';
import { ANONYMOUS_CALLER, type Caller, kubernetesCaller } from './caller.ts';
import { bearerToken, TOKEN_AUDIENCE, TokenReviews } from './token-reviews.ts';

export interface Authenticator {
  readonly kind: 'none' | 'kubernetes';
  /** `ApiError` SignInRequired when the request does not say, KubernetesAway when nobody can tell. */
  authenticate(request: IncomingMessage): Promise<Caller>;
  /** Of the API server, which tells for whom it asks. */
  readonly frontProxy: FrontProxy | undefined;
  close(): Promise<void>;
}

export const NO_AUTHENTICATION: Authenticator = {
  kind: 'none',
  authenticate: async () => ANONYMOUS_CALLER,
  frontProxy: undefined,
  close: async () => {},
};

export interface KubernetesAuthenticatorOptions {
  readonly kubeconfig: KubeConfig;
  /** Whose figures are asked for. */
  readonly fleet: string;
  /** Whether the API server may ask for others, as it does of an aggregated API: only over TLS it can prove that it is it. */
  readonly isAggregated: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A person waits for the answer that this delays. */
const REVIEW_TIMEOUT_MS = 5_000;

export function kubernetesAuthenticator(options: KubernetesAuthenticatorOptions): Authenticator {
  const { kubeconfig, fleet, isAggregated, clock, log } = options;
  const api = new ApiClient({ kubeconfig, timeoutMs: REVIEW_TIMEOUT_MS });
  const tokens = new TokenReviews({ api, clock });
  const rights = { reviews: new AccessReviews({ api, clock }), fleet };
  const frontProxy = isAggregated ? new FrontProxy({ api, clock, log }) : undefined;
  return {
    kind: 'kubernetes',
    frontProxy,
    async authenticate(request) {
      const settings = frontProxy?.settings;
      const forwarded = settings === undefined ? undefined : forwardedUser(request, settings);
      if (forwarded !== undefined) return kubernetesCaller(forwarded, rights);
      const token = bearerToken(request.headers.authorization);
      if (token === undefined)
        throw signInRequiredError('this console wants a Kubernetes token as `Authorization: Bearer TOKEN`');
      const user = await tokens.authenticate(token);
      if (user === undefined) throw signInRequiredError('the API server does not accept this token, or no longer');
      return kubernetesCaller(user, rights);
    },
    async close() {
      await frontProxy?.close();
      api.close();
    },
  };
}

function signInRequiredError(what: string): ApiError {
  return new ApiError(
    'SignInRequired',
    `${what}; \`kubectl create token SERVICEACCOUNT -n NAMESPACE --audience ${TOKEN_AUDIENCE}\` makes one`,
  );
}
