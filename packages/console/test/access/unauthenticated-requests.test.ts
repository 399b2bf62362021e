// Tests requests that the console answers without a review by the API server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { jsonRequest, startTestConsole, type TestConsole } from '../fixtures/test-console.ts';

const POST = jsonRequest('POST', { target: { type: 'Tenant', tenant: 'shop' }, message: 'x' });

test('listens on a network address and accepts every host name', async () => {
  await using console = await tokenConsole({ host: '0.0.0.0' });
  const { port } = new URL(console.url);
  const options = { host: '127.0.0.1', port, path: '/api/v1/services', headers: { host: 'console.example' } };
  const sent = request(options).end();
  const [response] = await once(sent, 'response');
  response.resume();
  assert.equal(response.statusCode, 401);
  assert.equal(response.headers['www-authenticate'], 'Bearer realm="weir"');
});

test('answers 401 with the command that creates a token', async () => {
  await using console = await tokenConsole();
  const { status, json } = await console.request('/api/v1/services');
  assert.equal(status, 401);
  assert.equal(json.error.code, 'SignInRequired');
  assert.match(json.error.message, /kubectl create token SERVICEACCOUNT -n NAMESPACE --audience console\.weir\.dev/);
});

test('serves page, health and OpenAPI document without a token', async () => {
  await using console = await tokenConsole();
  for (const path of ['/', '/app.js', '/healthz', '/readyz', '/openapi.json']) {
    assert.equal((await console.request(path)).status, 200, path);
  }
  const { components, paths } = (await console.request('/openapi.json')).json;
  assert.equal(components.securitySchemes.bearerAuth.scheme, 'bearer');
  assert.deepEqual(paths['/api/v1/services'].get.security, [{ bearerAuth: [] }]);
  assert.equal(paths['/healthz'].get.security, undefined);
});

test('refuses API requests from pages of other sites, but not links to the page', async () => {
  await using console = await tokenConsole();
  for (const site of ['cross-site', 'same-site']) {
    const headers = { ...POST.headers, authorization: 'Bearer token', 'sec-fetch-site': site };
    const response = await console.request('/api/v1/suspensions', { ...POST, headers });
    assert.equal(response.status, 403);
    assert.equal(response.json.error.code, 'ForeignOrigin');
    assert.equal((await console.request('/', { headers: { 'sec-fetch-site': site } })).status, 200);
  }
});

test('allows no other origin (CORS)', async () => {
  await using console = await tokenConsole();
  const headers = { origin: 'https://attacker.example', 'access-control-request-method': 'GET' };
  const response = await console.request('/api/v1/services', { method: 'OPTIONS', headers });
  assert.equal(response.status, 404);
  assert.equal(response.headers.get('access-control-allow-origin'), null);
});

test('refuses malformed and very long tokens without a review', async () => {
  await using console = await tokenConsole();
  for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer a b', 'Bearer ä', `Bearer ${'x'.repeat(15_000)} y`]) {
    assert.equal(
      (await console.request('/api/v1/services', { headers: { authorization: encodeURI(authorization) } })).status,
      401,
    );
  }
});

/** Starts a console whose API server does not exist, so that a review would fail with status 503. */
function tokenConsole(options: { readonly host?: string } = {}): Promise<TestConsole> {
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromClusterAndUser(
    { name: 'none', server: 'http://127.0.0.1:1', skipTLSVerify: true },
    { name: 'none' },
  );
  return startTestConsole({ ...options, auth: { kind: 'kubernetes', kubeconfig } });
}
