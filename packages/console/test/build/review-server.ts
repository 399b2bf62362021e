// An API server of which only the two questions of the console are answered.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';

/** By token: the user's name, and what they may do, as `get tenantusages shop` or, of one name, `get tenantusages/weir shop`; the namespace is empty for all. */
export type TestUsers = Readonly<Record<string, { readonly name: string; readonly may: readonly string[] }>>;

export interface ReviewServer extends AsyncDisposable {
  readonly kubeconfig: KubeConfig;
  /** What it says of itself as a front proxy from now on; at first nothing. */
  setFrontProxy(settings: FrontProxyData): void;
}

export interface FrontProxyData {
  /** PEM. */
  readonly ca: string;
  readonly allowedNames: readonly string[];
}

interface Review {
  readonly kind: string;
  readonly spec: {
    readonly token?: string;
    readonly user?: string;
    readonly resourceAttributes?: {
      readonly verb: string;
      readonly resource: string;
      readonly namespace: string;
      readonly name: string;
    };
  };
}

export async function startReviewServer(people: TestUsers): Promise<ReviewServer> {
  let frontProxy: FrontProxyData | undefined;
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      const data = frontProxy === undefined ? {} : configMapOf(frontProxy);
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
    }
    let text = '';
    for await (const chunk of request) text += chunk;
    const review = JSON.parse(text) as Review;
    const status =
      review.kind === 'TokenReview' ? tokenReviewStatus(people, review) : accessReviewStatus(people, review);
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ ...review, status }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromClusterAndUser(
    { name: 'reviews', server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, skipTLSVerify: true },
    { name: 'console' },
  );
  return {
    kubeconfig,
    setFrontProxy(settings) {
      frontProxy = settings;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function tokenReviewStatus(people: TestUsers, { spec: { token = '' } }: Review): object {
  const person = people[token];
  return person === undefined ? { authenticated: false } : { authenticated: true, user: { username: person.name } };
}

function accessReviewStatus(people: TestUsers, { spec: { user, resourceAttributes } }: Review): object {
  const { verb = '', resource = '', namespace = '', name = '' } = resourceAttributes ?? {};
  const enough = [resource, `${resource}/${name}`].map((what) => `${verb} ${what} ${namespace}`.trim());
  const own = Object.values(people).filter((person) => person.name === user);
  return { allowed: own.some((person) => person.may.some((right) => enough.includes(right))) };
}

function configMapOf({ ca, allowedNames }: FrontProxyData): Readonly<Record<string, string>> {
  return {
    'requestheader-client-ca-file': ca,
    'requestheader-allowed-names': JSON.stringify(allowedNames),
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
  };
}
