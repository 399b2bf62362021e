// Tests error pages and CAs in ConfigMaps, from the manifests to the answer that a client gets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { createServer, get as getOverTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { eventually, freePort, makeCertificate } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirProcess } from '../fixtures/weir-process.ts';

const configMap = (name: string, data: Readonly<Record<string, string>>): unknown => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'shop' },
  data,
});

test('shows the error pages of a ConfigMap, and follows its changes', async () => {
  await using files = manifestDirectory();
  const port = await freePort();
  const closed = await freePort();
  const annotations = { 'weir.dev/error-pages': 'pages' };
  files.write('shop.yaml', service('web', { port, appProtocol: 'http', annotations }), endpointSlice('web', closed));
  files.write('pages.yaml', configMap('pages', { '502.html': '<h1>We are back soon</h1>' }));
  await using _fleet = await startTestStandalone(files);
  const ask = async (): Promise<string> => {
    const request = get({ host: '127.0.0.1', port, agent: false, headers: { accept: 'text/html' } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 502);
    return text(response);
  };
  assert.equal(await ask(), '<h1>We are back soon</h1>');
  files.write('pages.yaml', configMap('pages', { '5xx.html': '<h1>Changed</h1>' }));
  await eventually(async () => assert.equal(await ask(), '<h1>Changed</h1>'));
  files.write('pages.yaml', configMap('pages', { '5xx.htm': '<h1>Not a page</h1>' }));
  await eventually(async () => assert.match(await ask(), /<h1>502 Bad Gateway<\/h1>/));
  const { json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.deepEqual(
    [json.ignored, json.statuses[0].accepted.reason, json.statuses[0].degraded[0].reason],
    [{}, 'Accepted', 'ErrorPagesNotUsed'],
  );
});

test('verifies endpoints by the CAs of a ConfigMap', async () => {
  await using files = manifestDirectory();
  const authority = makeCertificate({ name: 'pods', isAuthority: true });
  const pod = makeCertificate({ name: 'shop.internal', issuer: authority });
  const front = makeCertificate({ name: 'shop.example' });
  await using stack = new AsyncDisposableStack();
  const backend = createServer({ cert: pod.chain, key: pod.key }, (_request, response) => response.end('from the pod'));
  stack.defer(() => {
    backend.closeAllConnections();
    backend.close();
  });
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const port = await freePort();
  const annotations = {
    'weir.dev/tls-secret': 'front',
    'weir.dev/tls-ports': String(port),
    'weir.dev/backend-tls-ca': 'pods',
    'weir.dev/backend-tls-server-name': 'shop.internal',
  };
  files.write(
    'shop.yaml',
    service('web', { port, appProtocol: 'https', annotations }),
    endpointSlice('web', (backend.address() as AddressInfo).port),
    configMap('pods', { 'ca.crt': authority.certificate }),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'front', namespace: 'shop' },
      stringData: { 'tls.crt': front.chain, 'tls.key': front.key },
    },
  );
  await using _fleet = await startTestStandalone(files);
  const request = getOverTls({
    host: '127.0.0.1',
    port,
    ca: front.certificate,
    servername: 'shop.example',
    agent: false,
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.deepEqual([response.statusCode, await text(response)], [200, 'from the pod']);
});
