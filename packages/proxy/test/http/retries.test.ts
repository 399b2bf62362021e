// Tests which requests the proxy sends again, and which it answers itself.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { eventually, freePort } from '@weir/testkit';
import { answeringEndpoint, OK } from '../fixtures/answering-endpoint.ts';
import { ask, receive, startHttpWorker } from '../fixtures/http-worker.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody';
const LONG_POST = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(1_000)}`;

interface LostRequest {
  readonly name: string;
  readonly request: string;
  /** What the endpoint does with the request on a connection that has carried another request. */
  lose(socket: Socket): void;
  /** The status of the answer that the client gets, or `reset`. */
  readonly answer: number | 'reset';
  /** How many times the endpoint gets the request. */
  readonly sent: number;
}

const reset = (socket: Socket): void => void socket.resetAndDestroy();
const end = (socket: Socket): void => void socket.end();
/** Ends the connection when these bytes have left. */
const endAfter =
  (bytes: string) =>
  (socket: Socket): void =>
    void socket.end(bytes);

const LOST_REQUESTS: readonly LostRequest[] = [
  { name: 'a GET that was answered with RST', request: GET, lose: reset, answer: 200, sent: 2 },
  { name: 'a GET that was answered with FIN', request: GET, lose: end, answer: 200, sent: 2 },
  {
    name: 'a PUT without a body',
    request: 'PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n',
    lose: reset,
    answer: 200,
    sent: 2,
  },
  {
    name: 'a POST without a body',
    request: POST.replace('4\r\n\r\nbody', '0\r\n\r\n'),
    lose: reset,
    answer: 502,
    sent: 1,
  },
  { name: 'a PUT whose body was sent', request: POST.replace('POST', 'PUT'), lose: reset, answer: 502, sent: 1 },
  { name: 'a POST whose body was sent', request: POST, lose: reset, answer: 502, sent: 1 },
  { name: 'a POST whose body was half sent', request: LONG_POST, lose: reset, answer: 502, sent: 1 },
  { name: 'a GET with a part of a status line', request: GET, lose: endAfter('HTTP/1.1 2'), answer: 502, sent: 1 },
  {
    name: 'a GET with an interim response',
    request: GET,
    lose: endAfter('HTTP/1.1 103 Early Hints\r\n\r\n'),
    answer: 502,
    sent: 1,
  },
  {
    name: 'a GET with half of the response',
    request: GET,
    lose: endAfter('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha'),
    answer: 'reset',
    sent: 1,
  },
];

for (const { name: transportName, transport } of TRANSPORTS) {
  describe(`over ${transportName}, on a reused connection,`, () => {
    for (const { name, request, lose, answer, sent } of LOST_REQUESTS) {
      test(`${name} reaches the endpoint ${sent === 1 ? 'once' : 'again'}`, async () => {
        await using endpoint = await answeringEndpoint();
        using http = await startHttpWorker(transport, endpoint.endpoint);
        await using client = await http.client();
        assert.equal((await ask(client, GET)).status, 200);
        endpoint.answer = (socket) => {
          endpoint.answer = (other) => void other.write(OK);
          lose(socket);
        };
        await client.send(request);
        if (answer === 'reset') assert.equal((await client.ended).kind, 'error');
        else {
          if (name.includes('interim')) await client.take(/103 Early Hints\r\n(?:[^\r]+\r\n)*\r\n/);
          const response = await receive(client);
          assert.equal(response.status, answer);
          // The client's connection is in sync only if the request was complete.
          assert.equal(response.closes, request === LONG_POST);
          if (!response.closes) assert.equal((await ask(client, GET)).status, 200);
        }
        const method = request.split(' ')[0] as string;
        const following = typeof answer === 'number' && request !== LONG_POST ? 1 : 0;
        assert.equal(endpoint.heads.length, 1 + sent + following);
        assert.equal(endpoint.heads.slice(1).filter((head) => head.startsWith(method)).length >= sent, true);
        assert.deepEqual(http.refusals(), answer === 502 ? { 'endpoint-failed': 1 } : {});
        assert.deepEqual(http.worker.reported, []);
      });
    }

    test('a POST is sent again if no byte of it could be written', async () => {
      const sockets: Socket[] = [];
      await using endpoint = await answeringEndpoint((socket) => {
        sockets.push(socket);
        socket.write(OK);
      });
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      const [stream] = http.streams;
      assert.ok(stream !== undefined);
      const write = stream.write.bind(stream);
      stream.write = (bytes) => {
        // The kernel handles the RST at once, so the write fails before the worker has noticed the RST.
        sockets[0]?.resetAndDestroy();
        return write(bytes);
      };
      assert.equal((await ask(client, POST)).status, 200);
      assert.deepEqual(
        endpoint.heads.map((head) => head.split(' ')[0]),
        ['GET', 'POST'],
      );
    });

    test('a POST is sent on a new connection if the endpoint has closed the idle one', async () => {
      await using endpoint = await answeringEndpoint((socket) => void socket.end(OK));
      using http = await startHttpWorker(transport, endpoint.endpoint);
      await using client = await http.client();
      await ask(client, GET);
      await eventually(() => assert.equal(endpoint.open, 0));
      assert.equal((await ask(client, POST)).status, 200);
      assert.deepEqual([endpoint.accepted, http.refusals()], [2, {}]);
    });
  });

  test(`over ${transportName}, a new connection that ends without an answer is not tried again`, async () => {
    await using endpoint = await answeringEndpoint(reset);
    using http = await startHttpWorker(transport, endpoint.endpoint);
    await using client = await http.client();
    const { status, body } = await ask(client, GET);
    assert.deepEqual([status, endpoint.heads.length], [502, 1]);
    assert.match(body, /without an answer/);
  });

  test(`over ${transportName}, a POST reaches another endpoint if the first one refuses the connection`, async () => {
    await using endpoint = await answeringEndpoint();
    const dead = { address: '127.0.0.1', port: await freePort() };
    using http = await startHttpWorker(transport, dead, endpoint.endpoint);
    for (let request = 1; request <= 8; request += 1) {
      await using client = await http.client();
      assert.equal((await ask(client, POST)).status, 200);
    }
    assert.deepEqual([endpoint.heads.length, http.refusals()], [8, {}]);
  });

  test(`over ${transportName}, a Service without retries left answers 502, and has new ones after ten seconds`, async () => {
    const port = await freePort();
    using http = await startHttpWorker(transport, { address: '127.0.0.1', port }, { address: '127.0.0.2', port });
    await using client = await http.client();
    // Request n needs one retry, and 0.2·n + 30 retries are allowed.
    for (let request = 1; request <= 37; request += 1)
      assert.match((await ask(client, GET)).body, /did not accept the connection\./);
    assert.equal(http.streams.length, 2 * 37);
    const { status, body } = await ask(client, GET);
    assert.equal(status, 502);
    assert.match(body, /as did too many others/);
    assert.equal(http.streams.length, 2 * 37 + 1);
    assert.deepEqual(http.refusals(), { 'connect-failed': 37, 'retry-limit': 1 });
    http.worker.tick(10);
    await ask(client, GET);
    assert.deepEqual([http.streams.length, http.refusals()['connect-failed']], [2 * 38 + 1, 38]);
  });
}
