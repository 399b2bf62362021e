// Tests tenants that share one port of one address, from their manifests to their clients' connections.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePort } from '@weir/testkit';
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
