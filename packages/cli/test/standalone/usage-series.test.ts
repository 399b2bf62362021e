// Tests usage over time as a user sees it: from a client's bytes through the ledger to `weir usage --since`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, freePort, httpBackend } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

test('shows the usage of a tenant and of a Service over time, and explains mistakes', async () => {
  await using files = manifestDirectory();
  await using backend = await httpBackend({ handler: (_, response) => void response.end('hello') });
  const port = await freePort();
  files.write('shop.yaml', service('web', { port, appProtocol: 'http' }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  for (let request = 0; request < 3; request += 1) await (await fetch(`http://127.0.0.1:${port}/`)).text();
  type Item = { tenant: string; name?: string; step: string; points: { at: string; requests: number }[] };
  const itemOf = async (...args: string[]): Promise<Item> =>
    (await fleet.weir('usage', ...args, '-o', 'json')).json.items[0];
  const requestsIn = ({ points }: Item): number => points.reduce((sum, { requests }) => sum + requests, 0);
  await eventually(async () => assert.equal(requestsIn(await itemOf('shop', '--since', '1h', '--step', '1m')), 3), {
    timeoutMs: 15_000,
    intervalMs: 100,
  });
  const web = await itemOf('shop/web', '--since', '7d', '--step', '1h');
  assert.deepEqual([web.tenant, web.name, web.step, requestsIn(web)], ['shop', 'web', '1h', 3]);
  assert.ok(web.points.length >= 169);
  assert.match(web.points[0]?.at ?? '', /^\d{4}-\d\d-\d\dT\d\d:00:00Z$/);
  const { stdout } = await fleet.weir('usage', '--since', '2d', '--step', '1d');
  assert.match(stdout, /^FROM \(UTC\) +IN +OUT +CONNECTIONS +REQUESTS +5XX +REFUSED$/m);
  assert.match(stdout, /^\d{4}-\d\d-\d\d 00:00 .* 3 +0 % +0$/m);
  const refused = await fleet.weir('usage', '--since', '7d', '--step', '1m');
  assert.equal(refused.code, 2);
  assert.match(refused.output, /points for a step of 1m are kept for 2d; use step 1h/);
});
