// Tests how a user sees HTTP requests: from an endpoint's answers through the ledger to the output of the commands.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { eventually, freePort, httpBackend } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

test('shows the requests of a Service by code class in usage, top and explain', async () => {
  await using files = manifestDirectory();
  await using backend = await httpBackend({
    handler(request, response) {
      if (request.url === '/reset') request.socket.resetAndDestroy();
      else if (request.url !== '/never') response.writeHead(Number(request.url?.slice(1))).end();
    },
  });
  const port = await freePort();
  files.write('shop.yaml', service('web', { port, appProtocol: 'http' }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  const statusOf = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
  for (const status of [200, 200, 404, 503]) assert.equal(await statusOf(`/${status}`), status);
  assert.equal(await statusOf('/reset'), 502);
  // The endpoint never answers, and the client leaves.
  const leaving = connect({ host: '127.0.0.1', port });
  leaving.write('GET /never HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually(() => assert.equal(backend.requests, 6));
  leaving.resetAndDestroy();
  await eventually(
    async () => {
      const [shop] = (await fleet.weir('usage', '-o', 'json')).json.items;
      assert.equal(shop.requests, 6);
      assert.deepEqual(shop.requestsByCodeClass, { '2xx': 2, '3xx': 0, '4xx': 1, '5xx': 2, none: 1 });
      assert.deepEqual(shop.services[0].requestsByCodeClass, shop.requestsByCodeClass);
    },
    { timeoutMs: 15_000, intervalMs: 100 },
  );
  assert.match((await fleet.weir('usage')).stdout, /^ {2}shop\/web .* 6 +33 %$/m);
  assert.match(
    (await fleet.weir('explain', 'shop/web')).stdout,
    /^ {2}requests by code class: 2 2xx, 1 4xx, 2 5xx, 1 none$/m,
  );
  assert.match((await fleet.weir('top')).stdout, /^TENANT \/ SERVICE +IN +OUT +CONN\/S +REQ\/S +5XX$/m);
});

test('sends Forwarded to pods with --write-forwarded', async () => {
  await using files = manifestDirectory();
  await using backend = await httpBackend({
    handler: (request, response) => response.end(String(request.headers.forwarded)),
  });
  const port = await freePort();
  files.write('shop.yaml', service('web', { port, appProtocol: 'http' }), endpointSlice('web', backend.port));
  await using _fleet = await startTestStandalone(files, ['--write-forwarded']);
  const host = `127.0.0.1:${port}`;
  assert.equal(await (await fetch(`http://${host}`)).text(), `for=127.0.0.1;proto=http;host="${host}"`);
});
