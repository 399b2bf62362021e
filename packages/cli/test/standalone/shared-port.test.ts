// Tests tenants that share one port of one address, from their manifests to their clients' connections.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { eventually, freePort, httpBackend } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { greetingFrom, startTlsEchoServer } from '../fixtures/tls-echo-server.ts';

const named = (namespace: string, hosts: string, port: number): unknown =>
  service('web', { namespace, port, annotations: { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' } });
const allowing = (name: string, allowedHosts: readonly string[]): unknown => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name },
  spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } }, allowedHosts },
});

test('shares a port between tenants by host name, and refuses hosts outside the policies', async () => {
  await using files = manifestDirectory();
  await using shop = await startTlsEchoServer('shop');
  await using game = await startTlsEchoServer('game');
  const port = await freePort();
  files.write('policies.yaml', allowing('shop', ['*.example']), allowing('game', ['game.example']));
  files.write('shop.yaml', named('shop', '*.example', port), endpointSlice('web', shop.port));
  files.write('game.yaml', named('game', 'game.example', port), endpointSlice('web', game.port, { namespace: 'game' }));
  files.write('late.yaml', named('late', 'late.example', port));
  await using fleet = await startTestStandalone(files, ['--shared-ports', String(port)]);
  const { json } = await fleet.weir('get', 'services', '-o', 'json');
  const states = json.items.map(({ namespace, state, reason }: Record<string, string>) => [namespace, state, reason]);
  assert.deepEqual(states, [
    ['game', 'Programmed', 'Programmed'],
    ['late', 'Refused', 'HostNotAllowed'],
    ['shop', 'Programmed', 'Programmed'],
  ]);
  assert.equal(await greetingFrom({ port, servername: 'any.example' }), 'shop');
  assert.equal(await greetingFrom({ port, servername: 'game.example' }), 'game');
  await assert.rejects(greetingFrom({ port, servername: 'other.test' }), { code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' });
});

test('shares a host by path within a namespace, and gives the host to another tenant when it is free', async () => {
  await using files = manifestDirectory();
  await using pages = await httpBackend({ handler: ({ url }, response) => response.end(`pages ${url}`) });
  await using api = await httpBackend({ handler: ({ url }, response) => response.end(`api ${url}`) });
  await using game = await httpBackend({ handler: ({ url }, response) => response.end(`game ${url}`) });
  const port = await freePort();
  const http = (name: string, namespace: string, annotations: Readonly<Record<string, string>>): unknown =>
    service(name, {
      namespace,
      port,
      appProtocol: 'http',
      annotations: { 'weir.dev/hosts': 'www.example', ...annotations },
    });
  const apiAt = (prefix: string): unknown =>
    http('api', 'shop', { 'weir.dev/path-prefix': prefix, 'weir.dev/strip-prefix': 'true' });
  files.write('policies.yaml', allowing('shop', ['www.example']), allowing('zoo', ['www.example']));
  files.write('pages.yaml', http('pages', 'shop', {}), endpointSlice('pages', pages.port));
  files.write('api.yaml', apiAt('/api'), endpointSlice('api', api.port));
  files.write('zoo.yaml', http('game', 'zoo', {}), endpointSlice('game', game.port, { namespace: 'zoo' }));
  await using fleet = await startTestStandalone(files, ['--shared-ports', String(port)]);
  const { json } = await fleet.weir('get', 'services', '-o', 'json');
  const states = json.items.map(({ name, reason }: Record<string, string>) => [name, reason]);
  assert.deepEqual(states, [
    ['api', 'Programmed'],
    ['pages', 'Programmed'],
    ['game', 'HostConflict'],
  ]);
  assert.equal(await bodyOf(port, '/'), 'pages /');
  assert.equal(await bodyOf(port, '/apis'), 'pages /apis');
  assert.equal(await bodyOf(port, '/api/v1'), 'api /v1');
  assert.equal(await bodyOf(port, '/x/../%61pi/v1'), 'api /v1');

  files.write('api.yaml', apiAt('/v2'), endpointSlice('api', api.port));
  await eventually(async () => assert.equal(await bodyOf(port, '/v2/x'), 'api /x'));
  assert.equal(await bodyOf(port, '/api/v1'), 'pages /api/v1');

  files.remove('api.yaml');
  files.remove('pages.yaml');
  await eventually(async () => assert.equal(await bodyOf(port, '/api/v1'), 'game /api/v1'));
});

/** Returns the body of the answer to a request for the host `www.example`. */
async function bodyOf(port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { host: '127.0.0.1', port, path, agent: false, headers: { host: 'www.example' } };
  const sent = request(options, async (response) => {
    const pieces = await response.toArray();
    resolve(Buffer.concat(pieces).toString());
  });
  sent.on('error', reject).end();
  return promise;
}
