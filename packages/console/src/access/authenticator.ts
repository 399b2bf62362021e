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
  /**
   * Resolves with the user who sent the request. Throws `ApiError` SignInRequired if the request has no valid credentials, and
   * KubernetesAway if the API server cannot check the credentials.
   */
  authenticate(request: IncomingMessage): Promise<Caller>;
  /** Identifies the users of requests that the API server forwards. Undefined if the console is not an aggregated API. */
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
  /** The name of the fleet and of the fleet's TenantUsages. */
  readonly fleet: string;
  /**
   * Whether the API server may forward requests of users. Requires TLS, because the API server identifies itself with a client certificate.
   */
  readonly isAggregated: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

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
        throw signInRequiredError('this console needs a Kubernetes token in the header `Authorization: Bearer TOKEN`');
      const user = await tokens.authenticate(token);
      if (user === undefined)
        throw signInRequiredError('the API server does not accept this token; it may have expired');
      return kubernetesCaller(user, rights);
    },
    async close() {
      await frontProxy?.close();
      api.close();
    },
  };
}

function signInRequiredError(reason: string): ApiError {
  return new ApiError(
    'SignInRequired',
    `${reason}; create a token with \`kubectl create token SERVICEACCOUNT -n NAMESPACE --audience ${TOKEN_AUDIENCE}\``,
  );
}
