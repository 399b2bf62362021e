import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { endpointOf, startServing } from '../fixtures/services.ts';

/**
 * The addresses of the client and of the endpoint. Each test uses a free port, because IPv6 has only one loopback
 * address.
 */
const CASES = [
  { from: '::1', to: '127.0.0.1' },
  { from: '::1', to: '::1' },
  { from: '127.0.0.1', to: '::1' },
] as const;

for (const { from, to } of CASES) {
  test(`a client of ${from} is relayed to an endpoint of ${to}, with IPv6 source ranges, and counted`, async () => {
    await using backend = await echoServer({ host: to });
    await using fleet = await startFleet({ addresses: { a: from } });
    const port = await freePort(from);
    const sourceRanges = from === '::1' ? ['::1/128'] : ['127.0.0.0/8'];
    const service = { name: 'web', port, endpoints: [endpointOf({ host: to, port: backend.port })] };
    const proxy = await startServing(fleet, { ...service, settings: { sourceRanges } });
    await using client = await connectClient({ host: from, port });
    await client.send('hello');
    assert.equal((await client.take(5)).toString(), 'hello');
    await client.end();
    assert.deepEqual(await client.ended, { kind: 'end' });
    await eventually(() => assert.deepEqual(proxy.view().services[0]?.outcomes, { completed: 1 }));
    await fleet.serve({ ...service, settings: { sourceRanges: ['2001:db8::/32', '192.0.2.0/24'] } });
    await eventually(async () => {
      await using outsider = await connectClient({ host: from, port });
      // Before the change reaches the worker, the outsider is still served.
      const answer = outsider.send('hello').then(() => outsider.take(5));
      const end = await Promise.race([outsider.ended, answer.catch(() => outsider.ended)]);
      assert.deepEqual(end, { kind: 'error', code: 'ECONNRESET' });
    });
  });
}
