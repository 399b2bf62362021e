// From manifests to the wire: tenants that have one port of one address together.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer } from 'node:tls';
import { freePort } from '@weir/testkit';
import { manifests, service, slice } from './build/manifests.ts';
import { standalone } from './build/standalone.ts';

const named = (namespace: string, hosts: string, port: number): unknown =>
  service('web', { namespace, port, annotations: { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' } });
const allowing = (name: string, allowedHosts: readonly string[]): unknown => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name },
  spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } }, allowedHosts },
});

test('tenants share a port by host names within their policies, and are told why not', async () => {
  await using files = manifests();
  await using shop = await tlsNamed('shop');
  await using game = await tlsNamed('game');
  const port = await freePort();
  files.write('policies.yaml', allowing('shop', ['*.example']), allowing('game', ['game.example']));
  files.write('shop.yaml', named('shop', '*.example', port), slice('web', shop.port));
  files.write('game.yaml', named('game', 'game.example', port), slice('web', game.port, { namespace: 'game' }));
  files.write('late.yaml', named('late', 'late.example', port));
  await using fleet = await standalone(files, ['--shared-ports', String(port)]);
  const { json } = await fleet.weir('get', 'services', '-o', 'json');
  const told = json.items.map(({ namespace, state, reason }: Record<string, string>) => [namespace, state, reason]);
  assert.deepEqual(told, [
    ['game', 'Programmed', 'Programmed'],
    ['late', 'Refused', 'HostNotAllowed'],
    ['shop', 'Programmed', 'Programmed'],
  ]);
  assert.equal(await whoAnswers(port, 'any.example'), 'shop');
  assert.equal(await whoAnswers(port, 'game.example'), 'game');
  await assert.rejects(whoAnswers(port, 'other.test'), { code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' });
});

/** A shared key instead of certificates: nothing here depends on who signs what. */
const PSK = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const;
const KEY = Buffer.alloc(16, 7);

/** Ends TLS, and says its name to whoever comes. */
async function tlsNamed(name: string): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer({ ...PSK, pskCallback: () => KEY }, (socket) => {
    socket.on('error', () => undefined);
    socket.end(name);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}

async function whoAnswers(port: number, servername: string): Promise<string> {
  const pskCallback = (): { psk: Buffer; identity: string } => ({ psk: KEY, identity: 'test' });
  const at = { host: '127.0.0.1', port, servername };
  const client = connect({ ...at, ...PSK, pskCallback, checkServerIdentity: () => undefined });
  let answer = '';
  for await (const bytes of client) answer += String(bytes);
  return answer;
}
