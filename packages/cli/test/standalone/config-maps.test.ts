// Tests error pages and CAs in ConfigMaps, from the manifests to the answer that a client gets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { eventually, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { startTlsPod } from '../fixtures/tls-pod.ts';
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
  await using pod = await startTlsPod((_request, response) => response.end('from the pod'));
  files.write('shop.yaml', ...pod.manifests(), configMap('pods', { 'ca.crt': pod.authority.certificate }));
  await using _fleet = await startTestStandalone(files);
  const { status, body } = await pod.ask();
  assert.deepEqual([status, body], [200, 'from the pod']);
});
