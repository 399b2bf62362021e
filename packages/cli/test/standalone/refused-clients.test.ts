// Tests how a user sees refused clients: from a limit at the proxy through the ledger to the output of the commands.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

const WAIT = { timeoutMs: 30_000, intervalMs: 100 };

test('shows the clients that a limit refuses in explain, top --refused and usage', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const annotations = { 'weir.dev/max-connections': '1' };
  files.write('shop.yaml', service('web', { port, annotations }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  await using first = await connectClient({ host: '127.0.0.1', port });
  await first.send('hello');
  await first.take(5);
  let attempts = 0;
  // Rates show the last three seconds, so clients try to connect until `weir top` has shown refusals.
  await eventually(async () => {
    const refused = connect({ host: '127.0.0.1', port });
    // The proxy resets the connection.
    refused.once('error', () => undefined);
    refused.resume();
    await new Promise((resolve) => refused.once('close', resolve));
    attempts += 1;
    const { stdout } = await fleet.weir('top', '--refused');
    assert.match(stdout, /^ {2}shop\/web +\S+ +\S+ connection-limit$/m);
  }, WAIT);
  await eventually(async () => {
    const { json } = await fleet.weir('explain', 'shop/web', '-o', 'json');
    assert.deepEqual([json.month.refused, json.refusedToday], Array(2).fill({ 'connection-limit': attempts }));
  }, WAIT);
  assert.match(
    (await fleet.weir('explain', 'shop/web')).stdout,
    new RegExp(`^  this month: ${attempts} connection-limit$`, 'm'),
  );
  const [shop] = (await fleet.weir('usage', '-o', 'json')).json.items;
  assert.deepEqual(shop.refused, { 'connection-limit': attempts });
});
