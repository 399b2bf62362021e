// Tests that only the API server can send requests in the name of a user.
import assert from 'node:assert/strict';
import https from 'node:https';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import {
  type Certificate,
  eventually,
  makeCertificate,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@weir/testkit';
import { mountCertificate } from '../fixtures/mounted-certificate.ts';
import { type ReviewServer, startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { twoTenantStore } from '../fixtures/two-tenants.ts';

const NAME = 'front-proxy-client';
const USERS = { 'token-of-dev': { name: 'dev', may: ['get tenantusages shop'] } };
const ME = '/apis/console.weir.dev/v1/me';

describe('the front proxy', () => {
  const serverCertificate = makeCertificate({ name: '127.0.0.1' });
  const authority = makeCertificate({ name: 'front-proxy-ca', isAuthority: true });
  const client = makeCertificate({ name: NAME, issuer: authority, usage: 'client' });
  let directory: TemporaryDirectory;
  let reviews: ReviewServer;
  let clock: ManualClock;
  let console: TestConsole;

  before(() => {
    directory = temporaryDirectory('front-proxy');
    mountCertificate(directory, serverCertificate, 'one');
  });
  after(() => directory.close());
  beforeEach(async () => {
    reviews = await startReviewServer(USERS);
    reviews.setFrontProxy({ ca: authority.certificate, allowedNames: [NAME] });
    clock = new ManualClock(Date.now());
    console = await startTestConsole({
      seeded: await twoTenantStore(clock),
      clock,
      tls: `${directory.path}/..data`,
      auth: { kind: 'kubernetes', kubeconfig: reviews.kubeconfig },
    });
    await eventually(async () => assert.equal((await request(ME, { by: client, user: 'dev' })).status, 200));
  });

  afterEach(async () => {
    await console[Symbol.asyncDispose]();
    await reviews[Symbol.asyncDispose]();
  });

  interface TestRequest {
    readonly by?: Certificate;
    readonly user?: string;
    readonly headers?: Readonly<Record<string, string | string[]>>;
    readonly agent?: https.Agent;
  }
  const request = (
    path: string,
    { by, user, headers, agent }: TestRequest = {},
    // biome-ignore lint/suspicious/noExplicitAny: responses have different shapes
  ): Promise<{ status: number; json: any }> => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; json: unknown }>();
    const options = {
      ca: serverCertificate.certificate,
      ...(by === undefined ? {} : { cert: by.chain, key: by.key }),
      headers: { ...(user === undefined ? {} : { 'X-Remote-User': user }), ...headers },
      agent: agent ?? false,
    } as const;
    https
      .get(new URL(path, console.url), options, async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) });
      })
      .once('error', reject);
    return promise;
  };

  test('shows a forwarded user only the data that the user may see', async () => {
    const { status, json } = await request('/apis/console.weir.dev/v1/services', { by: client, user: 'dev' });
    assert.equal(status, 200);
    assert.deepEqual(
      json.items.map(({ name }: { name: string }) => name),
      ['extra', 'web'],
    );
    assert.equal((await request('/apis/console.weir.dev/v1/fleet', { by: client, user: 'dev' })).status, 403);
    assert.equal(
      (await request('/apis/console.weir.dev/v1/services/shop/web?x=1', { by: client, user: 'dev' })).status,
      400,
    );
  });

  test('ignores user headers without the certificate of the front proxy', async () => {
    const impostor = makeCertificate({ name: 'front-proxy-ca', isAuthority: true });
    const foreignCertificates: Record<string, Certificate | undefined> = {
      'no certificate': undefined,
      'self-signed': makeCertificate({ name: NAME, usage: 'client' }),
      'authority with the same name': makeCertificate({ name: NAME, issuer: impostor, usage: 'client' }),
      'other name': makeCertificate({ name: 'kubelet', issuer: authority, usage: 'client' }),
      'server certificate': makeCertificate({ name: NAME, issuer: authority, usage: 'server' }),
      expired: makeCertificate({
        name: NAME,
        issuer: authority,
        usage: 'client',
        notAfter: new Date(Date.now() - 60_000),
      }),
      'the authority itself': authority,
    };
    for (const [what, by] of Object.entries(foreignCertificates)) {
      const { status } = await request(ME, { ...(by === undefined ? {} : { by }), user: 'dev' });
      assert.equal(status, 401, what);
    }
  });

  test('accepts a token with a foreign certificate, and refuses the front proxy without a user', async () => {
    const by = makeCertificate({ name: NAME, usage: 'client' });
    const { json } = await request(ME, { by, user: 'operator', headers: { authorization: 'Bearer token-of-dev' } });
    assert.equal(json.user, 'dev');
    assert.equal((await request(ME, { by: client })).status, 401);
  });

  test('accepts only the new authority after a rotation, also on open connections', async () => {
    using agent = disposable(
      new https.Agent({
        keepAlive: true,
        maxSockets: 1,
        ca: serverCertificate.certificate,
        cert: client.chain,
        key: client.key,
      }),
    );
    assert.equal((await request(ME, { by: client, user: 'dev', agent: agent.value })).status, 200);
    const next = makeCertificate({ name: 'front-proxy-ca', isAuthority: true });
    reviews.setFrontProxy({ ca: next.certificate, allowedNames: [NAME] });
    const renewed = makeCertificate({ name: NAME, issuer: next, usage: 'client' });
    await eventually(async () => {
      await clock.advance(60_000);
      assert.equal((await request(ME, { by: renewed, user: 'dev' })).status, 200);
    });
    assert.equal((await request(ME, { by: client, user: 'dev' })).status, 401);
    assert.equal((await request(ME, { by: client, user: 'dev', agent: agent.value })).status, 401);
  });

  test('serves discovery without a user', async () => {
    const { status, json } = await request('/apis/console.weir.dev/v1');
    assert.equal(status, 200);
    assert.equal(json.kind, 'APIResourceList');
    assert.equal((await request('/openapi/v2')).json.swagger, '2.0');
  });
});

function disposable(agent: https.Agent): Disposable & { readonly value: https.Agent } {
  return { value: agent, [Symbol.dispose]: () => agent.destroy() };
}
