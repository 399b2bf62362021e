// Tests the exchanges of HTTP/1.1 that are more than one request and its response, byte by byte on both sides of a proxy.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { connectClient, type TestClient } from '@weir/testkit';
import { startFleet } from '../../fixtures/fleet.ts';
import { ask } from '../../fixtures/http-worker.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type ScriptedEndpoint, scriptedEndpoint } from '../../fixtures/scripted-endpoint.ts';
import { endpointOf, startServing, webService } from '../../fixtures/services.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

interface Exchange {
  readonly endpoint: ScriptedEndpoint;
  connect(): Promise<TestClient>;
}

/** Starts a proxy in front of an endpoint that the test controls. */
async function start(context: TestContext): Promise<Exchange> {
  const fleet = await startFleet();
  const endpoint = await scriptedEndpoint();
  const clients: TestClient[] = [];
  context.after(async () => {
    for (const client of clients) await client.close();
    await fleet[Symbol.asyncDispose]();
    await endpoint[Symbol.asyncDispose]();
  });
  await startServing(fleet, webService([endpointOf(endpoint)], { settings: { httpPorts: [PORT] } }));
  return {
    endpoint,
    async connect() {
      const client = await connectClient({ host: fleet.addressOf(), port: PORT });
      clients.push(client);
      return client;
    },
  };
}

const takeHead = async (client: TestClient): Promise<string> => (await client.take(/\r\n\r\n/)).toString('latin1');

/** The fields of a head that say how long the body and the connection are, and the status line before. */
function framingOf(head: string): readonly string[] {
  return head.split('\r\n').filter((line) => /^(HTTP\/|content-length:|transfer-encoding:|connection:)/i.test(line));
}

describe('a client that waits for 100 Continue', () => {
  const bodies = [
    { framing: 'Content-Length: 4', body: 'body' },
    { framing: 'Transfer-Encoding: chunked', body: '4\r\nbody\r\n0\r\n\r\n' },
  ];
  for (const { framing, body } of bodies) {
    test(`gets the 100 of the endpoint, and sends a body with ${framing}`, async (context) => {
      const { endpoint, connect } = await start(context);
      const client = await connect();
      await client.send(`POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`);
      const connection = await endpoint.next();
      assert.match((await connection.take('\r\n\r\n')).toString(), /\r\nexpect: 100-continue\r\n/i);
      await connection.send('HTTP/1.1 100 Continue\r\n\r\n');
      assert.equal(await takeHead(client), 'HTTP/1.1 100 Continue\r\n\r\n');
      await client.send(body);
      assert.equal((await connection.take(body.length)).toString(), body);
      await connection.send(OK);
      assert.match((await client.take(/ok$/)).toString(), /^HTTP\/1\.1 200 OK\r\n/);
      // Neither connection has a response or a body too many.
      const next = ask(client, GET);
      assert.match((await connection.take('\r\n\r\n')).toString(), /^GET \/ HTTP\/1\.1\r\n/);
      await connection.send(OK);
      assert.deepEqual(await next, { status: 200, body: 'ok', closes: false });
    });
  }

  test('sends no body if the endpoint refuses the request', async (context) => {
    const { endpoint, connect } = await start(context);
    const client = await connect();
    await client.send('PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n');
    const connection = await endpoint.next();
    await connection.take('\r\n\r\n');
    await connection.send('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
    // RFC 9110 §10.1.1: the connection ends, because the client may send the body nevertheless.
    assert.deepEqual(framingOf(await takeHead(client)), [
      'HTTP/1.1 401 Unauthorized',
      'Content-Length: 0',
      'Connection: close',
    ]);
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.deepEqual(await connection.ended, { kind: 'end' });
  });
});

describe('interim responses', () => {
  const INTERIM = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n';

  test('reach a client of HTTP/1.1 at once and in their order', async (context) => {
    const { endpoint, connect } = await start(context);
    const client = await connect();
    await client.send(GET);
    const connection = await endpoint.next();
    await connection.take('\r\n\r\n');
    await connection.send(INTERIM);
    assert.equal((await client.take(INTERIM.length)).toString(), INTERIM);
    await connection.send(`${INTERIM}${OK}`);
    assert.equal((await client.take(INTERIM.length)).toString(), INTERIM);
    assert.match((await client.take(/ok$/)).toString(), /^HTTP\/1\.1 200 OK\r\n/);
  });

  test('do not reach a client of HTTP/1.0', async (context) => {
    const { endpoint, connect } = await start(context);
    const client = await connect();
    await client.send('GET / HTTP/1.0\r\n\r\n');
    const connection = await endpoint.next();
    await connection.take('\r\n\r\n');
    await connection.send(`${INTERIM}${OK}`);
    assert.match(await takeHead(client), /^HTTP\/1\.1 200 OK\r\n/);
  });
});

interface Http10Case {
  readonly response: string;
  readonly request: string;
  /** What frames the response for the client. */
  readonly framing: readonly string[];
  readonly body: string;
  readonly isKept: boolean;
}

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n';
const ASKS_NOT = 'GET / HTTP/1.0\r\n\r\n';
const ASKS = 'GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n';
const HTTP10_CASES: Readonly<Record<string, Http10Case>> = {
  'a length, without keep-alive': {
    request: ASKS_NOT,
    response: OK,
    framing: ['Content-Length: 2', 'Connection: close'],
    body: 'ok',
    isKept: false,
  },
  'a length, with keep-alive': {
    request: ASKS,
    response: OK,
    framing: ['Content-Length: 2', 'Connection: keep-alive'],
    body: 'ok',
    isKept: true,
  },
  'no content, with keep-alive': {
    request: ASKS,
    response: 'HTTP/1.1 204 No Content\r\n\r\n',
    framing: ['Connection: keep-alive'],
    body: '',
    isKept: true,
  },
  // RFC 9112 §6.1: a client of HTTP/1.0 gets no chunks, so that the end of the connection ends the body.
  'chunks, without keep-alive': {
    request: ASKS_NOT,
    response: CHUNKED,
    framing: ['Connection: close'],
    body: 'hello',
    isKept: false,
  },
  'chunks, with keep-alive': {
    request: ASKS,
    response: CHUNKED,
    framing: ['Connection: close'],
    body: 'hello',
    isKept: false,
  },
};

describe('a client of HTTP/1.0', () => {
  for (const [name, { request, response, framing, body, isKept }] of Object.entries(HTTP10_CASES)) {
    test(`gets a response with ${name}, and the connection ${isKept ? 'stays open' : 'ends'}`, async (context) => {
      const { endpoint, connect } = await start(context);
      const client = await connect();
      await client.send(request);
      const connection = await endpoint.next();
      assert.match((await connection.take('\r\n\r\n')).toString(), /^GET \/ HTTP\/1\.1\r\n/);
      await connection.send(response);
      assert.deepEqual(framingOf(await takeHead(client)).slice(1), framing);
      if (isKept) {
        if (body !== '') assert.equal((await client.take(body.length)).toString(), body);
        await client.send(request);
        await connection.take('\r\n\r\n');
        await connection.send(OK);
        assert.match((await client.take(/ok$/)).toString(), /^HTTP\/1\.1 200 OK\r\n/);
      } else {
        assert.deepEqual(await client.ended, { kind: 'end' });
        assert.equal(client.buffered.toString(), body);
      }
    });
  }

  test('gets a response whose end is the end of the connection, and a client of HTTP/1.1 gets chunks', async (context) => {
    const { endpoint, connect } = await start(context);
    for (const { request, framing, body } of [
      { request: ASKS, framing: ['Connection: close'], body: 'until close' },
      { request: GET, framing: ['Transfer-Encoding: chunked'], body: 'b\r\nuntil close\r\n0\r\n\r\n' },
    ]) {
      const client = await connect();
      await client.send(request);
      const connection = await endpoint.next();
      await connection.take('\r\n\r\n');
      await connection.send('HTTP/1.1 200 OK\r\n\r\nuntil close');
      await connection.end();
      assert.deepEqual(framingOf(await takeHead(client)).slice(1), framing);
      assert.equal((await client.take(body.length)).toString(), body);
      if (request === ASKS) assert.deepEqual(await client.ended, { kind: 'end' });
    }
  });

  test('is reset if the endpoint breaks off a body whose end is the end of the connection', async (context) => {
    const { endpoint, connect } = await start(context);
    const client = await connect();
    await client.send(ASKS_NOT);
    const connection = await endpoint.next();
    await connection.take('\r\n\r\n');
    await connection.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
    await client.take(/hello$/);
    await connection.end();
    // FIN would tell the client that the body is complete.
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  });
});

test('CONNECT is answered with 501, and no endpoint is connected', async (context) => {
  const { endpoint, connect } = await start(context);
  for (const version of ['1.0', '1.1']) {
    const client = await connect();
    await client.send(`CONNECT a:443 HTTP/${version}\r\nHost: a:443\r\n\r\n\x16\x03\x01`);
    const [statusLine, ...framing] = framingOf(await takeHead(client));
    assert.equal(statusLine, 'HTTP/1.1 501 Not Implemented');
    assert.ok(framing.includes('Connection: close'));
    assert.deepEqual(await client.ended, { kind: 'end' });
  }
  assert.equal(endpoint.accepted, 0);
});

test('an answer before the end of the request reaches a client that still sends, and the rest is discarded', async (context) => {
  const { endpoint, connect } = await start(context);
  const client = await connect();
  await client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nfirst part');
  const connection = await endpoint.next();
  await connection.take('first part');
  await connection.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nhalf ');
  assert.deepEqual(framingOf(await takeHead(client)), [
    'HTTP/1.1 403 Forbidden',
    'Content-Length: 10',
    'Connection: close',
  ]);
  await client.take(/half $/);
  await client.send('second part');
  // The endpoint may still want the body, because its answer is not complete.
  await connection.take('second part');
  await connection.send('whole');
  assert.equal((await client.take(5)).toString(), 'whole');
  assert.deepEqual(await client.ended, { kind: 'end' });
  assert.deepEqual(await connection.ended, { kind: 'end' });
  // RFC 9112 §9.6: RST could make the client lose the answer, so that the proxy takes what the client still sends.
  await client.send('x'.repeat(16_000_000));
});

test('pipelined requests get their responses in order, also behind a slow one, HEAD and a body', async (context) => {
  const { endpoint, connect } = await start(context);
  const client = await connect();
  await client.send(
    'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n' +
      'HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n' +
      'POST /post HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n' +
      'GET /empty HTTP/1.1\r\nHost: a\r\n\r\n' +
      'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' +
      'GET /after-close HTTP/1.1\r\nHost: a\r\n\r\n',
  );
  const connection = await endpoint.next();
  const received: string[] = [];
  const answers: Readonly<Record<string, string>> = {
    '/slow': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n0\r\n\r\n',
    '/head': 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n',
    '/post': 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npost',
    '/empty': 'HTTP/1.1 204 No Content\r\n\r\n',
    '/last': 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast',
  };
  for (const path of Object.keys(answers)) {
    const head = (await connection.take('\r\n\r\n')).toString('latin1');
    received.push(head.split(' ', 2).join(' '));
    if (path === '/post') await connection.take('0\r\n\r\n');
    await connection.send(answers[path] as string);
  }
  assert.deepEqual(received, ['GET /slow', 'HEAD /head', 'POST /post', 'GET /empty', 'GET /last']);
  assert.deepEqual(await client.ended, { kind: 'end' });
  const text = client.buffered.toString('latin1').replace(/^(?:date|via|x-request-id): .*\r\n/gim, '');
  assert.equal(
    text,
    [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npost',
      'HTTP/1.1 204 No Content\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlast',
    ].join(''),
  );
  assert.equal(endpoint.accepted, 1);
});
