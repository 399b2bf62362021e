// Tests how an operator sees requests that are refused because all connections to their pods are full.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connectClient, eventually, freePort, type TestClient } from '@weir/testkit';
import { liveFrames } from '../../src/client/live-frames.ts';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';

const WAIT = { timeoutMs: 30_000, intervalMs: 100 };
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
/** One worker opens at most eight connections of HTTP/2 to a pod. */
const MAX_CONNECTIONS = 8;

/** Starts a pod that allows one request at a time on each connection, and answers none. */
async function busyPod(
  context: TestContext,
): Promise<{ readonly port: number; readonly requests: ServerHttp2Stream[] }> {
  const sessions: ServerHttp2Session[] = [];
  const requests: ServerHttp2Stream[] = [];
  const server = createServer({ settings: { maxConcurrentStreams: 1 } });
  server.on('session', (session) => sessions.push(session.on('error', () => undefined)));
  server.on('stream', (stream: ServerHttp2Stream) => requests.push(stream.on('error', () => undefined)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, requests };
}

test('shows requests that find no free connection to a pod in explain, top --refused and usage', async (context) => {
  await using files = manifestDirectory();
  const pod = await busyPod(context);
  const port = await freePort();
  files.write('shop.yaml', service('web', { port, appProtocol: 'kubernetes.io/h2c' }), endpointSlice('web', pod.port));
  await using fleet = await startTestStandalone(files);
  const waiting: TestClient[] = [];
  context.after(() => Promise.all(waiting.map((client) => client.close())));
  for (let count = 1; count <= MAX_CONNECTIONS; count += 1) {
    const client = await connectClient({ port });
    waiting.push(client);
    await client.send(GET);
    await eventually(() => assert.equal(pod.requests.length, count));
  }
  let refused = 0;
  const stop = new AbortController();
  const client = {
    async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
      const { body } = await fetch(new URL(path, fleet.url), { signal });
      return body ?? assert.fail('the console sends no frames');
    },
  };
  // One request per frame is refused, until a frame shows a refusal. A console has rates only while somebody watches.
  for await (const { services } of liveFrames(client, stop.signal)) {
    if (services.some(({ refusedPerSecond = {} }) => (refusedPerSecond.overloaded ?? 0) > 0)) break;
    await using asking = await connectClient({ port });
    await asking.send(GET);
    assert.match((await asking.take(/\r\n\r\n/)).toString(), /^HTTP\/1\.1 503 /);
    refused += 1;
  }
  stop.abort();
  // The rates may be zero again when the command has started.
  assert.match(
    (await fleet.weir('top', '--refused')).stdout,
    /^(TENANT \/ SERVICE +REFUSED\/S +REASONS|no client is being refused)$/m,
  );
  await eventually(async () => {
    const { json } = await fleet.weir('explain', 'shop/web', '-o', 'json');
    assert.deepEqual([json.month.refused, json.refusedToday], Array(2).fill({ overloaded: refused }));
  }, WAIT);
  const { stdout } = await fleet.weir('explain', 'shop/web');
  assert.match(stdout, new RegExp(`^  this month: ${refused} overloaded$`, 'm'));
  const [shop] = (await fleet.weir('usage', '-o', 'json')).json.items;
  assert.deepEqual(shop.refused, { overloaded: refused });
});
