// Who sent a request.
import type { IncomingMessage } from 'node:http';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock, Logger } from '@weir/runtime';
import { FrontProxy } from '../aggregation/front-proxy.ts';
import { remoteUser } from '../aggregation/remote-user.ts';
import { ApiError } from '../api/api-error.ts';
import { ApiConnection } from '../kubernetes/api-connection.ts';
import { AccessReviews } from './access-reviews.ts';
import { ANYBODY, type Caller } from './caller.ts';
import { kubernetesCaller } from './kubernetes-caller.ts';
import { AUDIENCE, bearerToken, TokenReviews } from './token-reviews.ts';

export interface SignIn {
  readonly kind: 'none' | 'kubernetes';
  /** `ApiError` SignInRequired when the request does not say, KubernetesAway when nobody can tell. */
  callerOf(request: IncomingMessage): Promise<Caller>;
  /** Of the API server, which tells for whom it asks. */
  readonly frontProxy: FrontProxy | undefined;
  close(): Promise<void>;
}

export const NO_SIGN_IN: SignIn = {
  kind: 'none',
  callerOf: async () => ANYBODY,
  frontProxy: undefined,
  close: async () => {},
};

export interface KubernetesSignInOptions {
  readonly kubeconfig: KubeConfig;
  /** Whose figures are asked for. */
  readonly fleet: string;
  /** Whether the API server may ask for others, as it does of an aggregated API: only over TLS it can prove that it is it. */
  readonly isAggregated: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A person waits for the answer that this delays. */
const TIMEOUT_MS = 5_000;

export function kubernetesSignIn(options: KubernetesSignInOptions): SignIn {
  const { kubeconfig, fleet, isAggregated, clock, log } = options;
  const api = new ApiConnection({ kubeconfig, timeoutMs: TIMEOUT_MS });
  const tokens = new TokenReviews({ api, clock });
  const rights = { reviews: new AccessReviews({ api, clock }), fleet };
  const frontProxy = isAggregated ? new FrontProxy({ api, clock, log }) : undefined;
  return {
    kind: 'kubernetes',
    frontProxy,
    async callerOf(request) {
      const settings = frontProxy?.settings;
      const forwarded = settings === undefined ? undefined : remoteUser(request, settings);
      if (forwarded !== undefined) return kubernetesCaller(forwarded, rights);
      const token = bearerToken(request.headers.authorization);
      if (token === undefined)
        throw signInRequired('this console wants a Kubernetes token as `Authorization: Bearer TOKEN`');
      const user = await tokens.userOf(token);
      if (user === undefined) throw signInRequired('the API server does not accept this token, or no longer');
      return kubernetesCaller(user, rights);
    },
    async close() {
      await frontProxy?.close();
      api.close();
    },
  };
}

function signInRequired(what: string): ApiError {
  return new ApiError(
    'SignInRequired',
    `${what}; \`kubectl create token SERVICEACCOUNT -n NAMESPACE --audience ${AUDIENCE}\` makes one`,
  );
}
