// Tests how a user sees refused clients: from a limit at the proxy through the ledger to the output of the commands.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { liveFrames } from '../../src/client/live-frames.ts';
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
  // One client per frame tries to connect, until a frame shows a refusal. A console has rates only while somebody watches.
  const stop = new AbortController();
  const client = {
    async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
      const { body } = await fetch(new URL(path, fleet.url), { signal });
      return body ?? assert.fail('the console sends no frames');
    },
  };
  for await (const { services } of liveFrames(client, stop.signal)) {
    if (services.some(({ refusedPerSecond = {} }) => (refusedPerSecond['connection-limit'] ?? 0) > 0)) break;
    const refused = connect({ host: '127.0.0.1', port });
    // The proxy resets the connection.
    refused.once('error', () => undefined);
    refused.resume();
    await new Promise((resolve) => refused.once('close', resolve));
    attempts += 1;
  }
  stop.abort();
  // The rates may be zero again when the command has started.
  assert.match(
    (await fleet.weir('top', '--refused')).stdout,
    /^(TENANT \/ SERVICE +REFUSED\/S +REASONS|no client is being refused)$/m,
  );
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
