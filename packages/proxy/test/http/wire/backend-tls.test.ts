// Tests TLS between the proxy and its endpoints: which certificates are accepted, and that connections and sessions are
// reused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
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
