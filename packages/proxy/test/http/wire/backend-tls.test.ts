// Tests TLS between the proxy and its endpoints: which certificates are accepted, and that connections and sessions are
// reused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  connect as connectHttp2,
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import { type AddressInfo, createServer as createPlainServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Endpoint } from '@weir/model';
import { type Certificate, connectClient, eventually, makeCertificate, type TestClient } from '@weir/testkit';
import { TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const PODS = makeCertificate({ name: 'Pods', isAuthority: true });
const OTHERS = makeCertificate({ name: 'Pods', isAuthority: true });
const POD = makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: PODS });
const BODY = 'x'.repeat(300_000);

interface TlsEndpoint extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** The TLS connections, in order. */
  readonly connections: readonly { readonly serverName: unknown; readonly isResumed: boolean }[];
  readonly requests: readonly string[];
  closeConnections(): void;
}

/** An HTTPS endpoint that answers each request with the request's body, or closes the connection after `GET /close`. */
async function tlsEndpoint(
  { chain, key }: Certificate,
  options: object = {},
  address = '127.0.0.1',
): Promise<TlsEndpoint> {
  const connections: { serverName: unknown; isResumed: boolean }[] = [];
  const requests: string[] = [];
  const server: Server = createServer({ cert: chain, key, ...options }, async (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const parts = await request.toArray();
    if (request.url === '/close') response.setHeader('connection', 'close');
    response.end(Buffer.concat(parts));
  });
  server.on('secureConnection', (socket: TLSSocket & { readonly servername?: unknown }) => {
    connections.push({ serverName: socket.servername, isResumed: socket.isSessionReused() });
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, address);
  await once(server, 'listening');
  return {
    endpoint: { address, port: (server.address() as AddressInfo).port },
    connections,
    requests,
    closeConnections: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface BackendOptions {
  readonly authority?: Certificate | null;
  readonly serverName?: string;
}

function encryptedAgain(
  endpoints: readonly Endpoint[],
  { authority = PODS, serverName = 'shop.internal' }: BackendOptions = {},
): TestService {
  const { certificate, settings } = terminatingTls({ alpn: ['http/1.1'], settings: { httpPorts: [PORT] } });
  assert.ok(certificate && settings?.tls);
  const backend = { caSecret: 'pods', serverName, ports: [PORT] };
  return webService(endpoints, {
    certificate: { ...certificate, ...(authority && { backendAuthorities: authority.certificate }) },
    settings: { ...settings, tls: { ...settings.tls, backend } },
  });
}

const connectTo = ({ host, port }: WorkerInTest): Promise<TestClient> =>
  connectClient({ host, port, tls: TRUSTING_CLIENT });

/** Sends a request on an open connection and returns the status and the body of the response. */
async function ask(client: TestClient, path: string, body = ''): Promise<readonly [status: string, body: string]> {
  await client.send(`POST ${path} HTTP/1.1\r\nHost: web.example\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  let head = '';
  while (!head.endsWith('\r\n\r\n')) head += (await client.take(1)).toString('latin1');
  const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
  const answer = length === 0 ? '' : (await client.take(length)).toString('latin1');
  return [head.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3), answer];
}

for (const { name: transportName, transport } of TRANSPORTS) {
  describe(`requests to endpoints that expect TLS, over ${transportName},`, () => {
    const startWorker = (service: TestService): Promise<WorkerInTest> => startWorkerInTest(service, { transport });

    test('are encrypted again, over one connection with the server name', async () => {
      await using backend = await tlsEndpoint(POD);
      using worker = await startWorker(encryptedAgain([backend.endpoint]));
      await using client = await connectTo(worker);
      assert.deepEqual(await ask(client, '/first', 'hello'), ['200', 'hello']);
      assert.deepEqual(await ask(client, '/second', BODY), ['200', BODY]);
      await using other = await connectTo(worker);
      assert.deepEqual(await ask(other, '/third', 'again'), ['200', 'again']);
      assert.deepEqual(backend.requests, ['POST /first', 'POST /second', 'POST /third']);
      assert.deepEqual(backend.connections, [{ serverName: 'shop.internal', isResumed: false }]);
      assert.deepEqual(worker.reported, []);
    });

    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      test(`resume the session of the endpoint on a further connection with ${version}`, async () => {
        await using backend = await tlsEndpoint(POD, { maxVersion: version });
        using worker = await startWorker(encryptedAgain([backend.endpoint]));
        for (const _ of [1, 2, 3]) {
          await using client = await connectTo(worker);
          assert.deepEqual(await ask(client, '/close', 'x'), ['200', 'x']);
        }
        assert.deepEqual(
          backend.connections.map(({ isResumed }) => isResumed),
          [false, true, true],
        );
      });
    }

    const refused: readonly [name: string, certificate: Certificate, options: BackendOptions][] = [
      ['of another CA', POD, { authority: OTHERS }],
      ['with another name', POD, { serverName: 'other.internal' }],
      [
        'that has expired',
        makeCertificate({
          name: 'pod',
          names: ['shop.internal'],
          issuer: PODS,
          notBefore: new Date('2020-01-01T00:00:00Z'),
        }),
        {},
      ],
      ['that is self-signed', makeCertificate({ name: 'pod', names: ['shop.internal'] }), {}],
    ];
    for (const [name, certificate, options] of refused) {
      test(`are never sent to an endpoint with a certificate ${name}`, async () => {
        await using backend = await tlsEndpoint(certificate);
        using worker = await startWorker(encryptedAgain([backend.endpoint], options));
        await using client = await connectTo(worker);
        assert.equal((await ask(client, '/secret'))[0], '502');
        assert.deepEqual(backend.requests, []);
        assert.deepEqual(worker.reported, []);
      });
    }

    test('are sent to another endpoint if one has a wrong certificate', async () => {
      await using wrong = await tlsEndpoint(makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: OTHERS }));
      await using right = await tlsEndpoint(POD);
      using worker = await startWorker(encryptedAgain([wrong.endpoint, right.endpoint]));
      for (const path of ['/1', '/2', '/3']) {
        await using client = await connectTo(worker);
        assert.deepEqual(await ask(client, path, 'x'), ['200', 'x']);
      }
      assert.deepEqual(wrong.requests, []);
      assert.equal(right.requests.length, 3);
    });

    test('are sent to another endpoint if one refuses connections, or never answers the handshake', async () => {
      // The algorithm `first` tries the endpoints in the order of their addresses.
      const silent = createPlainServer().listen(0, '127.0.0.2');
      await once(silent, 'listening');
      const closed = createPlainServer().listen(0, '127.0.0.1');
      await once(closed, 'listening');
      const [silentEndpoint, closedEndpoint] = [silent, closed].map((server) => server.address() as AddressInfo);
      assert.ok(silentEndpoint && closedEndpoint);
      closed.close();
      await once(closed, 'close');
      await using right = await tlsEndpoint(POD, {}, '127.0.0.3');
      const { settings, ...service } = encryptedAgain([closedEndpoint, silentEndpoint, right.endpoint]);
      using worker = await startWorker({ ...service, settings: { ...settings, algorithm: 'first' } });
      await using client = await connectTo(worker);
      const isWaiting = once(silent, 'connection');
      const answer = ask(client, '/', 'x');
      const [waiting] = (await isWaiting) as [Socket];
      // The proxy gives up with RST, which `once` would report as an error.
      const waitingEnded = new Promise((resolve) => waiting.on('error', () => undefined).on('close', resolve));
      await once(waiting, 'data');
      worker.tick(6);
      assert.deepEqual(await answer, ['200', 'x']);
      await waitingEnded;
      silent.close();
      assert.deepEqual(worker.reported, []);
    });

    test('are refused while the CAs are missing', async () => {
      await using backend = await tlsEndpoint(POD);
      using worker = await startWorker(encryptedAgain([backend.endpoint], { authority: null }));
      await using client = await connectTo(worker);
      assert.match((await ask(client, '/'))[0], /^50[23]$/);
      assert.deepEqual(backend.connections, []);
    });

    test('use neither a connection nor a session that was verified with former CAs', async () => {
      await using backend = await tlsEndpoint(POD);
      using worker = await startWorker(encryptedAgain([backend.endpoint]));
      await using client = await connectTo(worker);
      assert.equal((await ask(client, '/before'))[0], '200');
      worker.serve(encryptedAgain([backend.endpoint], { authority: OTHERS }));
      await using next = await connectTo(worker);
      assert.equal((await ask(next, '/after'))[0], '502');
      assert.deepEqual(backend.requests, ['POST /before']);
      worker.serve(encryptedAgain([backend.endpoint]));
      await using last = await connectTo(worker);
      assert.equal((await ask(last, '/restored'))[0], '200');
    });

    test('use a new connection after the endpoint has closed the idle one', async () => {
      await using backend = await tlsEndpoint(POD);
      using worker = await startWorker(encryptedAgain([backend.endpoint]));
      await using client = await connectTo(worker);
      assert.equal((await ask(client, '/1'))[0], '200');
      backend.closeConnections();
      await eventually(async () => {
        await using next = await connectTo(worker);
        assert.equal((await ask(next, '/2'))[0], '200');
      });
      assert.equal(backend.connections.length, 2);
    });
  });
}

interface Seen {
  readonly version: string;
  readonly scheme: string | undefined;
  readonly body: string;
  readonly trailer: string | undefined;
}

/** An endpoint that records its requests. With `http2`, it speaks HTTP/2 and HTTP/1.1, and prefers HTTP/2. */
async function recordingEndpoint(http2: boolean): Promise<AsyncDisposable & { endpoint: Endpoint; seen: Seen[] }> {
  const seen: Seen[] = [];
  const options = { cert: POD.chain, key: POD.key };
  const server = http2 ? createSecureServer({ ...options, allowHTTP1: true }) : createServer(options);
  server.on(
    'request',
    async (
      request: Http2ServerRequest | (IncomingMessage & { scheme?: string }),
      response: Http2ServerResponse | ServerResponse,
    ) => {
      const body = Buffer.concat(await request.toArray()).toString();
      const { httpVersion: version, scheme, trailers } = request;
      seen.push({ version, scheme, body, trailer: String(trailers['x-end']) });
      response.setHeader('content-length', body.length);
      response.end(body);
    },
  );
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    seen.push({ version: request.httpVersion, scheme: undefined, body: 'upgrade', trailer: undefined });
    socket.end('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: { address: '127.0.0.1', port: (server.address() as AddressInfo).port },
    seen,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

/** Sends a chunked body with a trailer, in several parts, as a client of HTTP/1.1. Returns the body of the answer. */
async function sendChunked({ host, port }: WorkerInTest, parts: readonly string[]): Promise<string> {
  const headers = { 'transfer-encoding': 'chunked', trailer: 'x-end', host: 'web.example' };
  const request = httpsRequest({ host, port, method: 'POST', headers, agent: false, ...TRUSTING_CLIENT });
  for (const part of parts) await new Promise((resolve) => request.write(part, resolve));
  request.addTrailers({ 'x-end': 'yes' });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return Buffer.concat(await response.toArray()).toString();
}

describe('an endpoint that expects TLS', () => {
  for (const http2 of [true, false]) {
    const [version, scheme] = http2 ? ['2.0', 'https'] : ['1.1', undefined];
    test(`gets HTTP/${version} if it chooses HTTP/${version}`, async () => {
      await using backend = await recordingEndpoint(http2);
      const service = encryptedAgain([backend.endpoint]);
      const [port] = service.settings?.tls?.ports ?? [];
      assert.ok(service.settings?.tls && port);
      const ports = [{ ...port, alpn: ['h2', 'http/1.1'] }];
      const settings = { ...service.settings, tls: { ...service.settings.tls, ports } };
      using worker = await startWorkerInTest({ ...service, settings });
      const parts = ['first ', BODY, ' last'];
      assert.equal(await sendChunked(worker, parts), parts.join(''));
      assert.equal(await sendChunked(worker, []), '');
      await using client = await connectTo(worker);
      assert.deepEqual(await ask(client, '/length', BODY), ['200', BODY]);
      const session = connectHttp2(`https://${worker.host}:${worker.port}`, TRUSTING_CLIENT);
      const stream = session.request({ ':method': 'POST', ':path': '/', ':authority': 'web.example' });
      stream.write('some ');
      stream.end(BODY);
      assert.equal(Buffer.concat(await stream.toArray()).toString(), `some ${BODY}`);
      session.destroy();
      assert.deepEqual(
        backend.seen,
        [
          { body: parts.join(''), trailer: 'yes' },
          { body: '', trailer: 'yes' },
          { body: BODY, trailer: 'undefined' },
          { body: `some ${BODY}`, trailer: 'undefined' },
        ].map(({ body, trailer }) => ({ version, scheme, body, trailer })),
      );
      assert.deepEqual(worker.reported, []);
    });
  }

  test('gets no request on a connection of HTTP/2 that was verified with former CAs', async () => {
    await using backend = await recordingEndpoint(true);
    using worker = await startWorkerInTest(encryptedAgain([backend.endpoint]));
    assert.equal(await sendChunked(worker, ['before']), 'before');
    worker.serve(encryptedAgain([backend.endpoint], { authority: OTHERS }));
    await using client = await connectTo(worker);
    assert.equal((await ask(client, '/after'))[0], '502');
    worker.serve(encryptedAgain([backend.endpoint]));
    assert.equal(await sendChunked(worker, ['restored']), 'restored');
    assert.deepEqual(
      backend.seen.map(({ version, body }) => [version, body]),
      [
        ['2.0', 'before'],
        ['2.0', 'restored'],
      ],
    );
  });

  test('gets WebSockets over HTTP/1.1, whatever it chooses for requests', async () => {
    await using backend = await recordingEndpoint(true);
    using worker = await startWorkerInTest(encryptedAgain([backend.endpoint]));
    assert.equal(await sendChunked(worker, ['x']), 'x');
    await using client = await connectTo(worker);
    await client.send('GET / HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    assert.match((await client.take(/\r\n\r\n/)).toString(), /^HTTP\/1.1 101 /);
    assert.deepEqual(
      backend.seen.map(({ version, body }) => [version, body]),
      [
        ['2.0', 'x'],
        ['1.1', 'upgrade'],
      ],
    );
  });
});
