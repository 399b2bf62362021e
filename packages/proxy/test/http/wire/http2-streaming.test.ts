// Tests streams of HTTP/2 clients that last longer than the idle timeout: server-sent events, long polls and WebSockets. The
// clock of the worker advances only by `tick`.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { type TestContext, test } from 'node:test';
import type { Change } from '@weir/model';
import { eventually } from '@weir/testkit';
import { PORT } from '../../fixtures/listen-address.ts';
import { type EndpointConnection, scriptedEndpoint } from '../../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../../fixtures/services.ts';
import { type TestService, tableFor, uidOf } from '../../fixtures/tables.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const IDLE_SECONDS = 10;
const HTTP = { settings: { httpPorts: [PORT], idleTimeoutMs: IDLE_SECONDS * 1_000 } };
/** The timeouts have a resolution of one second, and one more second is rounded up. */
const ROUNDING = 2;
const EVENT_STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n';

function sessionTo(context: TestContext, { host, port }: WorkerInTest): ClientHttp2Session {
  const session = connect(`http://${host}:${port}`);
  session.on('error', () => undefined);
  context.after(() => session.destroy());
  return session;
}

interface Received {
  readonly text: string;
}

/** Collects what a stream receives. */
function received(stream: ClientHttp2Stream): Received {
  const result = { text: '' };
  stream.on('error', () => undefined);
  stream.on('data', (part: Buffer) => {
    result.text += String(part);
  });
  return result;
}

const statusOf = async (stream: ClientHttp2Stream): Promise<number> => {
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  return Number(headers[':status']);
};

const closeOf = (stream: ClientHttp2Stream): Promise<unknown> =>
  new Promise((resolve) => {
    stream.once('close', resolve);
  });

/** Sends one event, and waits until the client has received the event and nothing else. */
async function relayEvent(endpoint: EndpointConnection, client: Received, event: string): Promise<void> {
  const before = client.text;
  const data = `data: ${event}\n\n`;
  await endpoint.send(`${data.length.toString(16)}\r\n${data}\r\n`);
  await eventually(() => assert.equal(client.text, before + data));
}

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: relays server-sent events one by one, for longer than the idle timeout`, async (context) => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], HTTP), { transport });
    const stream = sessionTo(context, worker).request({ ':path': '/events', accept: 'text/event-stream' });
    const client = received(stream);
    const endpoint = await backend.next();
    await endpoint.take('\r\n\r\n');
    await endpoint.send(EVENT_STREAM_HEAD);
    assert.equal(await statusOf(stream), 200);
    for (let event = 0; event < 4; event += 1) {
      await relayEvent(endpoint, client, String(event));
      worker.tick(IDLE_SECONDS - 2);
    }
    assert.equal(stream.closed, false);
    const closed = closeOf(stream);
    worker.tick(IDLE_SECONDS + ROUNDING);
    await closed;
    assert.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
    assert.deepEqual(await endpoint.ended, { kind: 'error', code: 'ECONNRESET' });
  });

  test(`${name}: relays the answer to a long poll within the idle timeout, and answers with 504 afterwards`, async (context) => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], HTTP), { transport });
    const session = sessionTo(context, worker);
    const poll = async (): Promise<readonly [ClientHttp2Stream, EndpointConnection]> => {
      const stream = session.request({ ':path': '/poll' });
      const endpoint = await backend.next();
      await endpoint.take('\r\n\r\n');
      return [stream, endpoint];
    };
    const [stream, endpoint] = await poll();
    const client = received(stream);
    // An interim response of the endpoint is progress, too.
    const processing = once(stream, 'headers');
    worker.tick(IDLE_SECONDS - 2);
    await endpoint.send('HTTP/1.1 102 Processing\r\n\r\n');
    const [interim] = (await processing) as [IncomingHttpHeaders];
    assert.equal(interim[':status'], 102);
    worker.tick(IDLE_SECONDS - 2);
    await endpoint.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnews');
    assert.equal(await statusOf(stream), 200);
    await once(stream, 'end');
    assert.equal(client.text, 'news');
    const [late] = await poll();
    received(late);
    worker.tick(IDLE_SECONDS + ROUNDING);
    assert.equal(await statusOf(late), 504);
    assert.equal(session.closed, false, 'other requests may follow');
  });

  test(`${name}: a stream of a Service with a longer idle timeout than the connection's Service continues`, async (context) => {
    await using backend = await scriptedEndpoint();
    const service = (serviceName: string, over: TestService['settings']): TestService =>
      webService([endpointOf(backend)], {
        name: serviceName,
        shared: true,
        settings: { httpPorts: [PORT], hosts: [`${serviceName}.example`], ...over },
      });
    const shop = service('shop', { idleTimeoutMs: IDLE_SECONDS * 1_000 });
    const events = service('events', { idleTimeoutMs: 10 * IDLE_SECONDS * 1_000 });
    using worker = await startWorkerInTest(shop, { transport });
    const table = tableFor({ a: worker.host }, [shop, events]);
    const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
    worker.apply({ kind: 'table', changes, slots: [[uidOf(events), 2]] });
    const session = sessionTo(context, worker);
    const first = session.request({ ':authority': 'shop.example', ':path': '/' });
    received(first);
    const short = await backend.next();
    await short.take('\r\n\r\n');
    await short.send('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    assert.equal(await statusOf(first), 204);
    const stream = session.request({ ':authority': 'events.example', ':path': '/events' });
    const client = received(stream);
    const endpoint = await backend.next();
    await endpoint.take('\r\n\r\n');
    await endpoint.send(EVENT_STREAM_HEAD);
    assert.equal(await statusOf(stream), 200);
    for (let event = 0; event < 3; event += 1) {
      worker.tick(5 * IDLE_SECONDS);
      await relayEvent(endpoint, client, String(event));
    }
    assert.deepEqual([stream.closed, session.closed], [false, false]);
    const closed = closeOf(stream);
    worker.tick(10 * IDLE_SECONDS + ROUNDING);
    await closed;
    assert.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  });
}
