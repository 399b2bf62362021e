// The clients of a tenant: from connections at a real proxy through its admin server and the console to the command.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

test('shows the clients of a tenant with the most bytes and connections', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('db', { port }), endpointSlice('db', backend.port));
  await using fleet = await startTestStandalone(files, ['--top-clients']);
  const empty = await fleet.weir('top', '--clients', 'shop');
  assert.match(empty.stdout, /^no client of tenant shop since \S+Z\n$/);
  for (const localAddress of ['127.0.0.7', '127.0.0.8', '127.0.0.8']) {
    await using client = await connectClient({ port, localAddress });
    await client.send('hello');
    await client.take(5);
    await client.end();
    await client.ended;
  }
  await eventually(async () => {
    const shown = await fleet.weir('top', '--clients', 'shop');
    assert.match(shown.stdout, /^clients of tenant shop since \S+Z; /);
    assert.match(
      shown.stdout,
      /CLIENT +BYTES +ERROR +SHARE\n127\.0\.0\.8 +20 B +- +67 ?%\n127\.0\.0\.7 +10 B +- +33 ?%\n/,
    );
    assert.match(
      shown.stdout,
      /CLIENT +CONNECTIONS +ERROR +SHARE\n127\.0\.0\.8 +2 +- +67 ?%\n127\.0\.0\.7 +1 +- +33 ?%\n/,
    );
  });
  const { bytes, missing } = JSON.parse((await fleet.weir('top', '--clients', 'shop', '-o', 'json')).stdout);
  assert.deepEqual([bytes.total, bytes.unlistedAtMost, missing], [30, 0, []]);
  const unknown = await fleet.weir('top', '--clients', 'rival');
  assert.equal(unknown.code, 1);
});

test('says how to turn the counts on', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  files.write('shop.yaml', service('db', { port: await freePort() }), endpointSlice('db', backend.port));
  await using fleet = await startTestStandalone(files);
  const refused = await fleet.weir('top', '--clients', 'shop');
  assert.equal(refused.code, 1);
  assert.match(
    refused.output,
    /the proxies do not count clients; the operator can set the chart value proxy.topClients/,
  );
});
