import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Certificate, makeCertificate, startForwardProxy, temporaryDirectory } from '@weir/testkit';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { loadKubeConfig } from '../../src/kubernetes/kube-config.ts';

const REQUEST = { method: 'GET', path: '/version' } as const;
const RESPONSE = { gitVersion: 'v1.36.0' };

interface RotatingServer {
  readonly api: KubeApi;
  readonly authority: string;
  /** Returns the number of connections that clients have made to the API server. */
  connections(): number;
  /** Gives the server and the kubeconfig a new certificate. */
  rotate(): void;
}

async function startRotatingServer(
  context: TestContext,
  cluster: Readonly<Record<string, string>>,
): Promise<RotatingServer> {
  const directory = temporaryDirectory('connection');
  const [ca, path] = [join(directory.path, 'ca.crt'), join(directory.path, 'kubeconfig')];
  let connections = 0;
  const own = (): Certificate => makeCertificate({ name: '127.0.0.1' });
  const first = own();
  const server = https.createServer({ cert: first.chain, key: first.key }, (_request, response) => {
    response.end(JSON.stringify(RESPONSE));
  });
  server.on('secureConnection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(ca, first.certificate);
  const there = { server: `https://${authority}`, 'certificate-authority': ca, ...cluster };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: there }],
    users: [{ name: 'a', user: { token: 'x' } }],
  };
  writeFileSync(path, JSON.stringify(config));
  const api = new KubeApi(loadKubeConfig(path));
  context.after(async () => {
    api.close();
    server.closeAllConnections();
    server.close();
    await directory.close();
  });
  return {
    api,
    authority,
    connections: () => connections,
    rotate() {
      const next = own();
      server.setSecureContext({ cert: next.chain, key: next.key });
      server.closeIdleConnections();
      writeFileSync(ca, next.certificate);
    },
  };
}

test('keeps a connection for the next request until the certificates change', async (context) => {
  const { api, connections, rotate } = await startRotatingServer(context, {});
  for (let request = 0; request < 3; request += 1) assert.deepEqual(await api.request(REQUEST), RESPONSE);
  assert.equal(connections(), 1);
  rotate();
  assert.deepEqual(await api.request(REQUEST), RESPONSE);
  assert.equal(connections(), 2);
});

test('sends requests through the proxy of the kubeconfig with the current certificates', async (context) => {
  await using proxy = await startForwardProxy();
  const { api, authority, rotate } = await startRotatingServer(context, { 'proxy-url': proxy.url });
  assert.deepEqual(await api.request(REQUEST), RESPONSE);
  rotate();
  assert.deepEqual(await api.request(REQUEST), RESPONSE);
  assert.deepEqual(proxy.connectTargets, [authority, authority]);
});
