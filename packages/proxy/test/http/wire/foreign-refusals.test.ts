// Tests requests on a connection of one Service that another Service refuses, or that no Service gets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { test } from 'node:test';
import { connectClient, eventually, httpBackend } from '@weir/testkit';
import { startFleet } from '../../fixtures/fleet.ts';
import { ask } from '../../fixtures/http-worker.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { ALL_REQUESTS } from '../../fixtures/logged-requests.ts';
import { endpointOf } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

test('logs a request that another Service refuses, or no Service gets, not for the Service of the connection', async () => {
  await using fleet = await startFleet();
  await using backend = await httpBackend({ handler: (_request, response) => response.end('x') });
  const service = (name: string, settings: TestService['settings']): TestService => ({
    name,
    port: PORT,
    shared: true,
    endpoints: [endpointOf(backend)],
    settings: { httpPorts: [PORT], accessLog: ALL_REQUESTS, hosts: [`${name}.example`], ...settings },
  });
  await fleet.serve(service('web', {}), service('other', { sourceRanges: ['192.0.2.0/24'] }));
  let text = '';
  const accessLogOutput = {
    async write(bytes: Uint8Array): Promise<void> {
      text += Buffer.from(bytes).toString();
    },
  };
  const proxy = await fleet.proxy({ accessLogOutput });
  await proxy.ready;
  const at = { host: fleet.addressOf(), port: PORT };
  await using client = await connectClient(at);
  const get = (host: string, path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}.example\r\n\r\n`;
  const session = connect(`http://${at.host}:${at.port}`);
  for (const [host, path, status] of [
    ['web', '/first', 200],
    ['other', '/secret', 403],
    ['nobody', '/secret', 404],
    ['web', '/last', 200],
  ] as const) {
    if (path !== '/last') assert.equal((await ask(client, get(host, path))).status, status);
    const stream = session.request({ ':authority': `${host}.example`, ':path': path });
    const [headers] = (await once(stream.resume(), 'response')) as [IncomingHttpHeaders];
    assert.equal(headers[':status'], status);
  }
  await eventually(() => assert.match(text, /\/last/));
  session.destroy();
  assert.doesNotMatch(text, /secret/);
});

test("counts a request that another Service refuses for that Service, against the limit of the connection's Service", async () => {
  await using fleet = await startFleet();
  await using backend = await httpBackend({ handler: (_request, response) => response.end('x') });
  const limits = { connections: null, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };
  const service = (name: string, settings: TestService['settings']): TestService => ({
    name,
    port: PORT,
    shared: true,
    endpoints: [endpointOf(backend)],
    settings: { httpPorts: [PORT], hosts: [`${name}.example`], ...settings },
  });
  // At this rate no token comes back during the test, except one at the start of each second.
  const web = service('web', { limits: { ...limits, requestsPerSecond: 3 } });
  await fleet.serve(web, service('other', { sourceRanges: ['192.0.2.0/24'] }));
  const proxy = await fleet.proxy();
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  const get = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}.example\r\n\r\n`;
  assert.equal((await ask(client, get('web'))).status, 200);
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429) statuses.push((await ask(client, get('other'))).status);
  assert.ok(statuses.length >= 3);
  assert.ok(
    statuses.slice(0, -1).every((status) => status === 403),
    statuses.join(' '),
  );
  await eventually(async () => {
    const usage = await fleet.usage();
    assert.deepEqual([usage.web?.requests, usage.other?.requests], [1, statuses.length]);
  });
});
