// Tests TLS to the endpoints, from the manifests to the answer that a client gets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { type Certificate, eventually, freePort, makeCertificate } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

const secret = (name: string, stringData: Readonly<Record<string, string>>): unknown => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop' },
  stringData,
});

interface Answer {
  readonly status: number | undefined;
  readonly hsts: string | undefined;
  readonly body: string;
}

async function ask(port: number, ca: Certificate): Promise<Answer> {
  const host = 'shop.example';
  const options = { host: '127.0.0.1', port, servername: host, ca: ca.certificate, agent: false, headers: { host } };
  const [response] = (await once(get(options), 'response')) as [IncomingMessage];
  const body = await text(response);
  return { status: response.statusCode, hsts: response.headers['strict-transport-security'], body };
}

test('encrypts requests to the endpoints again, and follows a changed Secret with their CAs', async () => {
  await using files = manifestDirectory();
  const [clientsTrust, podsTrust, other] = ['public', 'pods', 'other'].map((name) =>
    makeCertificate({ name, isAuthority: true }),
  );
  assert.ok(clientsTrust && podsTrust && other);
  const front = makeCertificate({ name: 'shop.example', issuer: clientsTrust });
  const pod = makeCertificate({ name: 'shop.internal', issuer: podsTrust });
  const backend = createServer({ cert: pod.chain, key: pod.key }, (_request, response) => response.end('from the pod'));
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const port = await freePort();
  const annotations = {
    'weir.dev/tls-secret': 'front',
    'weir.dev/tls-ports': String(port),
    'weir.dev/backend-tls-ca': 'pods',
    'weir.dev/backend-tls-server-name': 'shop.internal',
    'weir.dev/hsts-max-age': '60',
  };
  files.write(
    'shop.yaml',
    service('web', { port, appProtocol: 'https', annotations }),
    endpointSlice('web', (backend.address() as AddressInfo).port),
    secret('front', { 'tls.crt': front.chain, 'tls.key': front.key }),
  );
  files.write('pods.yaml', secret('pods', { 'ca.crt': podsTrust.certificate }));
  await using _fleet = await startTestStandalone(files);
  const good = { status: 200, hsts: 'max-age=60', body: 'from the pod' };
  assert.deepEqual(await ask(port, clientsTrust), good);
  files.write('pods.yaml', secret('pods', { 'ca.crt': other.certificate }));
  await eventually(async () => assert.equal((await ask(port, clientsTrust)).status, 502));
  files.write('pods.yaml', secret('pods', { 'ca.crt': other.certificate + podsTrust.certificate }));
  await eventually(async () => assert.deepEqual(await ask(port, clientsTrust), good));
  backend.closeAllConnections();
  backend.close();
});

test('presents a certificate to pods that demand one, and follows the changed Secret', async () => {
  await using files = manifestDirectory();
  const authorities = ['public', 'pods', 'proxies'].map((name) => makeCertificate({ name, isAuthority: true }));
  const [clientsTrust, podsTrust, proxiesTrust] = authorities;
  assert.ok(clientsTrust && podsTrust && proxiesTrust);
  const front = makeCertificate({ name: 'shop.example', issuer: clientsTrust });
  const pod = makeCertificate({ name: 'shop.internal', issuer: podsTrust });
  const backend = createServer(
    { cert: pod.chain, key: pod.key, ca: proxiesTrust.certificate, requestCert: true, rejectUnauthorized: true },
    ({ socket }, response) => response.end((socket as TLSSocket).getPeerCertificate().subject.CN),
  );
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const port = await freePort();
  const annotations = {
    'weir.dev/tls-secret': 'front',
    'weir.dev/tls-ports': String(port),
    'weir.dev/backend-tls-ca': 'pods',
    'weir.dev/backend-tls-server-name': 'shop.internal',
    'weir.dev/backend-tls-secret': 'proxies',
  };
  files.write(
    'shop.yaml',
    service('web', { port, appProtocol: 'https', annotations }),
    endpointSlice('web', (backend.address() as AddressInfo).port),
    secret('front', { 'tls.crt': front.chain, 'tls.key': front.key }),
    secret('pods', { 'ca.crt': podsTrust.certificate }),
  );
  const writeCertificate = (name: string): void => {
    const { chain, key } = makeCertificate({ name, issuer: proxiesTrust });
    files.write('proxies.yaml', secret('proxies', { 'tls.crt': chain, 'tls.key': key }));
  };
  writeCertificate('first');
  await using _fleet = await startTestStandalone(files);
  assert.equal((await ask(port, clientsTrust)).body, 'first');
  writeCertificate('second');
  await eventually(async () => assert.equal((await ask(port, clientsTrust)).body, 'second'));
  backend.closeAllConnections();
  backend.close();
});
