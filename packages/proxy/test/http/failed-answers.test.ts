// Tests which answers of endpoints count as failures, so that five of them in a row eject an endpoint.
import assert from 'node:assert/strict';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { EJECTION_THRESHOLD_ANSWERS, type Endpoint, endpointKey } from '@weir/model';
import { connectClient, eventually, freePort } from '@weir/testkit';
import { epollTransport } from '../../src/transport/tcp/epoll-transport.ts';
import type { PassiveHealthReport } from '../../src/upstream/connect-reports.ts';
import { answeringEndpoint, OK } from '../fixtures/answering-endpoint.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { ask, type HttpWorker, startHttpWorker } from '../fixtures/http-worker.ts';
import { ask2, http2Client, http2Endpoint, serveHttp2 } from '../fixtures/http2-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { outcomesFor, startServing, webService } from '../fixtures/services.ts';
import type { WorkerInTest } from '../fixtures/worker-in-test.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const BROKEN_OFF = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha';

type Answer = (socket: Socket) => void;

const write =
  (bytes: string): Answer =>
  (socket) =>
    void socket.write(bytes);
const status = (line: string): Answer => write(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\n\r\n`);
const end =
  (bytes: string): Answer =>
  (socket) =>
    void socket.end(bytes);
/** Resets the connection when these bytes have left. */
const reset =
  (bytes: string): Answer =>
  (socket) =>
    bytes === '' ? void socket.resetAndDestroy() : void socket.write(bytes, () => socket.resetAndDestroy());

const FAILURES: Readonly<Record<string, Answer>> = {
  'RST without an answer': reset(''),
  'FIN without an answer': end(''),
  'RST behind an interim response': reset('HTTP/1.1 103 Early Hints\r\n\r\n'),
  'FIN in a head': end('HTTP/1.1 200 OK\r\nContent-'),
  'the status 502': status('502 Bad Gateway'),
  'the status 503': status('503 Service Unavailable'),
  'the status 504': status('504 Gateway Timeout'),
};
const ANSWERS: Readonly<Record<string, Answer>> = {
  'the status 500': status('500 Internal Server Error'),
  'the status 501': status('501 Not Implemented'),
  'the status 404': status('404 Not Found'),
  'RST in a body': reset(BROKEN_OFF),
  'FIN in a body': end(BROKEN_OFF),
};

/** The reports of a worker about one endpoint. */
function reportsAbout({ answers }: WorkerInTest, endpoint: Endpoint): readonly PassiveHealthReport[] {
  return answers
    .flatMap((message) => (message.kind === 'passive-health' ? message.reports : []))
    .filter((report) => report.endpoint === endpointKey(endpoint));
}

/** Sends a request, and waits until its connection to the endpoint has ended, or until the client has an answer. */
async function askOnce(http: HttpWorker): Promise<void> {
  await using client = await http.client();
  await client.send(GET);
  await Promise.race([client.ended, client.take(/HTTP\/1\.1 [2-5]\d\d .*\r\n\r\n/s).catch(() => undefined)]);
}

describe('five requests in a row are reported as failed', () => {
  for (const [name, answer] of Object.entries(FAILURES)) {
    test(`if the endpoint answers with ${name}`, async () => {
      await using endpoint = await answeringEndpoint(answer);
      using http = await startHttpWorker(epollTransport, endpoint.endpoint);
      for (let request = 1; request <= EJECTION_THRESHOLD_ANSWERS; request += 1) await askOnce(http);
      await eventually(() =>
        assert.deepEqual(
          reportsAbout(http.worker, endpoint.endpoint).map(({ answers }) => answers),
          ['failed'],
        ),
      );
      assert.equal(endpoint.heads.length, EJECTION_THRESHOLD_ANSWERS);
    });
  }

  test('if the endpoint resets each stream of HTTP/2', async (context) => {
    const at = await http2Endpoint(context, (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
    const worker = await serveHttp2(context, [at]);
    const client = http2Client(context, worker);
    for (let request = 1; request <= EJECTION_THRESHOLD_ANSWERS; request += 1)
      assert.equal((await ask2(client, { ':path': '/' })).status, 502);
    await eventually(() => assert.deepEqual(reportsAbout(worker, at.endpoint)[0]?.answers, 'failed'));
  });

  test('only without a good answer in between', async () => {
    await using endpoint = await answeringEndpoint();
    using http = await startHttpWorker(epollTransport, endpoint.endpoint);
    for (let round = 0; round < 3; round += 1) {
      endpoint.answer = reset('');
      // The connection to the endpoint is a new one, because the endpoint has closed the former.
      for (let request = 1; request < EJECTION_THRESHOLD_ANSWERS; request += 1) await askOnce(http);
      endpoint.answer = (socket) => void socket.end(OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
      await askOnce(http);
    }
    await assertNotReported(http, endpoint.endpoint);
  });
});

describe('no request is reported as failed', () => {
  for (const [name, answer] of Object.entries(ANSWERS)) {
    test(`if the endpoint answers with ${name}`, async () => {
      await using endpoint = await answeringEndpoint(answer);
      using http = await startHttpWorker(epollTransport, endpoint.endpoint);
      for (let request = 1; request <= 2 * EJECTION_THRESHOLD_ANSWERS; request += 1) await askOnce(http);
      await assertNotReported(http, endpoint.endpoint);
    });
  }
});

/** Asserts that nothing was reported about the endpoint, when the next report about another endpoint has come. */
async function assertNotReported(http: HttpWorker, endpoint: Endpoint): Promise<void> {
  const dead = { address: '127.0.0.1', port: await freePort() };
  http.serve(endpoint, dead);
  await eventually(async () => {
    await askOnce(http);
    assert.ok(reportsAbout(http.worker, dead).length > 0);
  });
  assert.deepEqual(reportsAbout(http.worker, endpoint), []);
}

describe('an endpoint is ejected', () => {
  const FAILING: Readonly<Record<string, Answer>> = {
    'answers five requests in a row with 503': status('503 Unavailable'),
    'resets the connections of five requests in a row': reset(''),
  };
  for (const [name, answer] of Object.entries(FAILING)) {
    test(`if it ${name}`, async () => {
      await using fleet = await startFleet();
      await using failing = await answeringEndpoint(answer);
      await using working = await answeringEndpoint();
      const endpoints = [failing.endpoint, working.endpoint];
      const proxy = await startServing(fleet, webService(endpoints, { settings: { httpPorts: [PORT] } }));
      await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
      await eventually(async () => {
        for (let request = 1; request <= 10; request += 1) await ask(client, GET);
        const states = (await fleet.heartbeats())[0]?.unhealthy?.endpoints.map(({ state, why }) => [state, why]);
        const why = '5 requests in a row were answered with 502, 503 or 504, or not at all';
        assert.deepEqual(states, [['ejected', why]]);
      });
      const before = failing.heads.length;
      for (let request = 1; request <= 20; request += 1) assert.equal((await ask(client, GET)).status, 200);
      assert.equal(failing.heads.length, before);
      await client.end();
      await eventually(() => assert.deepEqual(outcomesFor(proxy), { completed: 1 }));
    });
  }
});

test('relays the answer of an endpoint that answers and resets the connection while the request is written', async () => {
  // Node resets a connection that is destroyed while unread bytes wait.
  await using endpoint = await answeringEndpoint((socket) => {
    socket.pause();
    socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno', () =>
      socket.destroy(),
    );
  });
  using served = await startHttpWorker(epollTransport, endpoint.endpoint);
  const body = Buffer.alloc(8_000_000, 'x');
  for (let attempt = 0; attempt < 3 * EJECTION_THRESHOLD_ANSWERS; attempt += 1) {
    await using client = await served.client();
    void client
      .send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`)
      .then(() => client.send(body))
      .catch(() => undefined);
    await client.take(/^HTTP\/1\.1 413 [\s\S]*no$/);
  }
  assert.deepEqual(reportsAbout(served.worker, endpoint.endpoint), []);
});
