// Tests how requests on HTTP/2 connections to endpoints end before their responses: by a suspension, and by the drain timeout.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as http1Request, type IncomingMessage } from 'node:http';
import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { eventually } from '@weir/testkit';
import {
  ask1,
  ask2,
  echo,
  type Http2Endpoint,
  http2Client,
  http2Endpoint,
  http2Service,
  serveHttp2,
} from '../../fixtures/http2-endpoint.ts';
import { cutOff } from '../../fixtures/suspensions.ts';
import { unresponsiveEndpoint } from '../../fixtures/unresponsive-endpoint.ts';
import type { WorkerInTest } from '../../fixtures/worker-in-test.ts';

interface OpenRequests {
  readonly worker: WorkerInTest;
  readonly at: Http2Endpoint;
  /** The requests as the endpoint sees them. Their responses have begun, and have no end. */
  readonly streams: readonly ServerHttp2Stream[];
  readonly http1: IncomingMessage;
  readonly http2: ClientHttp2Stream;
}

/** Opens a request of an HTTP/1.1 client and a request of an HTTP/2 client on one connection to the endpoint. */
async function openRequests(context: TestContext, settings = {}): Promise<OpenRequests> {
  const streams: ServerHttp2Stream[] = [];
  const at = await http2Endpoint(context, (stream) => {
    streams.push(stream);
    stream.respond({ ':status': 200 });
    stream.write('begun');
  });
  const worker = await serveHttp2(context, [at], { settings });
  const { host, port } = worker;
  const request = http1Request({ host, port, agent: false }).end();
  request.on('error', () => undefined);
  const [http1] = (await once(request, 'response')) as [IncomingMessage];
  http1.on('error', () => undefined);
  await once(http1, 'data');
  const http2 = http2Client(context, worker).request({ ':path': '/' });
  http2.on('error', () => undefined);
  await once(http2, 'data');
  assert.deepEqual([at.sessions.length, streams.length], [1, 2]);
  return { worker, at, streams, http1, http2 };
}

/** Waits until both clients know that their responses are not complete, and the endpoint that nobody reads its responses. */
async function assertEnded({ streams, http1, http2 }: OpenRequests): Promise<void> {
  await eventually(() => {
    assert.ok(http1.closed && !http1.complete);
    assert.ok(http2.closed);
  });
  assert.notEqual(http2.rstCode, constants.NGHTTP2_NO_ERROR);
  await eventually(() =>
    assert.deepEqual(
      streams.map(({ rstCode }) => rstCode),
      [constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL],
    ),
  );
}

test('a suspension ends the requests on HTTP/2 connections to endpoints', async (context) => {
  const open = await openRequests(context);
  const { worker, at, streams } = open;
  worker.apply(cutOff());
  await assertEnded(open);
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'cut-off': 2 }));
  assert.equal((await ask1(worker, '/')).status, 403);
  assert.equal(streams.length, 2);
  worker.tick(31);
  await eventually(() => assert.ok(at.sessions[0]?.destroyed));
});

test('requests on HTTP/2 connections to a removed endpoint continue for the drain timeout, and are then reset', async (context) => {
  const open = await openRequests(context, { drainTimeoutMs: 2_000 });
  const { worker, at, streams, http1, http2 } = open;
  const other = await http2Endpoint(context, echo);
  worker.serve(http2Service([other], { settings: { drainTimeoutMs: 2_000 } }));
  worker.tick(2);
  assert.equal((await ask1(worker, '/')).status, 200);
  assert.equal(other.sessions.length, 1);
  for (const stream of streams) stream.write('more');
  for (const response of [http1, http2]) assert.equal(String((await once(response, 'data'))[0]), 'more');
  worker.tick(1);
  await assertEnded(open);
  await eventually(() => assert.equal(worker.outcomes().drained, 2));
  await eventually(() => assert.ok(at.sessions[0]?.destroyed));
  assert.equal(other.sessions[0]?.destroyed, false);
});

test('a request of an HTTP/2 client that waits for a removed endpoint goes to another endpoint', async (context) => {
  await using gone = await unresponsiveEndpoint();
  const worker = await serveHttp2(context, [gone]);
  const other = await http2Endpoint(context, echo);
  const client = http2Client(context, worker);
  await once(client, 'remoteSettings');
  const answer = ask2(client, { ':path': '/' });
  // The answer to the PING follows the request.
  await promisify<void>((done) => client.ping(() => done(null)))();
  worker.serve(http2Service([other]));
  assert.equal((await answer).status, 200);
});
