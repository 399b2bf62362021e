// Serves the manifests of the HTTP pages with `weir standalone`, unchanged, and sends requests as the clients of a reader would. The
// pages use ports such as 80 and 443, so the test runs in a network namespace of its own.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type RequestListener,
  request as startRequest,
} from 'node:http';
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttpsServer, request as startTlsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { type Certificate, connectClient, eventually, makeCertificate } from '@weir/testkit';
import { insideNamespace } from '@weir/tools';
import { fencedBlocks, readPage } from '../src/docs/markdown.ts';
import { servePage, startPod } from '../src/docs/served-page.ts';

const manifestsIn = (page: string): string[] =>
  fencedBlocks(readPage(page), 'yaml').map(({ text: manifest }) => manifest);
const secret = (name: string, data: Readonly<Record<string, string>>): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop' },
  stringData: data,
});
const tlsSecret = (name: string, { chain, key }: Certificate): object =>
  secret(name, { 'tls.crt': chain, 'tls.key': key });
const allowedHosts = {
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name: 'shop' },
  spec: { allowedHosts: ['*.shop.example.com'] },
};
/** The answer of a pod: its name, and what the pod received. */
const named =
  (name: string): RequestListener =>
  (request, response) =>
    void text(request).then((body) => response.end(`${name} ${request.url} ${body}`));
const authority = makeCertificate({ name: 'public', isAuthority: true });
const certificateFor = (name: string): Certificate => makeCertificate({ name, issuer: authority });

const requirement = { ...insideNamespace(), timeout: 120_000 };

describe('the manifests of the HTTP pages', requirement, () => {
  test('http.md: a host is shared by path, a WebSocket echoes, and a browser gets HTTP/2', async () => {
    const [pages, api, chat, frontend] = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'] as const;
    await using _pages = await startPod(createServer(named('pages')), { host: pages, port: 8080 });
    await using _api = await startPod(createServer(named('api')), { host: api, port: 8080 });
    await using _frontend = await startPod(createServer(named('frontend')), { host: frontend, port: 8080 });
    const webSocketServer = createServer().on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.pipe(socket);
    });
    await using _chat = await startPod(webSocketServer, { host: chat, port: 8082 });
    const tlsHost = 'www.shop.example.com';
    await using _page = await servePage({
      manifests: manifestsIn('docs/http.md'),
      objects: [allowedHosts, tlsSecret('frontend-tls', certificateFor(tlsHost))],
      pods: { 'storefront-pages': pages, 'storefront-api': api, chat, frontend },
      args: ['--shared-ports', '80'],
    });
    const host = 'store.shop.example.com';
    assert.equal((await ask(80, { path: '/apis', host })).body, 'pages /apis ');
    assert.equal((await ask(80, { path: '/api/v1', host })).body, 'api /v1 ');

    await using client = await connectClient({ port: 8082 });
    await client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    assert.match((await client.take(/\r\n\r\n/)).toString(), /^HTTP\/1\.1 101 /);
    await client.send('hello');
    assert.equal((await client.take(5)).toString(), 'hello');

    using session = openHttp2('https://127.0.0.1', { servername: tlsHost });
    const answer = await session.ask({ ':path': '/x' });
    assert.deepEqual([session.protocol(), answer.headers[':status'], answer.body], ['h2', 200, 'frontend /x ']);
  });

  test('http-requests.md: a large body is refused, a cookie is set, and an error page is shown', async () => {
    const [api, sessions, catalog] = ['127.0.1.1', '127.0.1.2', '127.0.1.3'] as const;
    await using _api = await startPod(createServer(named('api')), { host: api, port: 8080 });
    await using _sessions = await startPod(createServer(named('sessions')), { host: sessions, port: 8081 });
    // Nothing listens at the address of the pod of `catalog`.
    await using _page = await servePage({
      manifests: manifestsIn('docs/http-requests.md'),
      pods: { api, sessions, catalog },
    });
    assert.equal((await ask(8080, { path: '/x', method: 'POST', body: 'abc' })).body, 'api /x abc');
    const length = 10 * 2 ** 20 + 1;
    assert.equal(await statusOfHead(8080, `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`), 413);
    const first = await ask(8081, { path: '/' });
    assert.equal(first.body, 'sessions / ');
    assert.match(String(first.headers['set-cookie']), /^sessions-endpoint=\S+; Path=\/; HttpOnly$/);
    const failed = await ask(8083, { path: '/', accept: 'text/html' });
    assert.deepEqual(
      [failed.status, failed.body],
      [502, '<!doctype html><title>Sorry</title><h1>We are back soon</h1>'],
    );
    assert.equal((await ask(8083, { path: '/', accept: 'application/json' })).body, '{"error": "catalog"}');
  });

  test('grpc.md: a call reaches the pod over HTTP/2, and its status comes back in the trailers', async () => {
    const orders = '127.0.1.1';
    const server = createHttp2Server().on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      void text(stream).then((body) => stream.end(`${headers[':path']} ${body}`));
    });
    await using _pod = await startPod(server, { host: orders, port: 50_051 });
    await using _page = await servePage({ manifests: manifestsIn('docs/grpc.md'), pods: { orders } });
    using session = openHttp2('http://127.0.0.1:50051');
    const call = { ':method': 'POST', ':path': '/shop.Orders/Get', 'content-type': 'application/grpc', te: 'trailers' };
    const { headers, trailers, body } = await session.ask(call, 'message');
    assert.deepEqual([headers[':status'], trailers['grpc-status'], body], [200, '0', '/shop.Orders/Get message']);
  });

  test('access-log.md: a request is one line of the standard output', async () => {
    const storefront = '127.0.1.1';
    await using _pod = await startPod(createServer(named('storefront')), { host: storefront, port: 8080 });
    await using page = await servePage({ manifests: manifestsIn('docs/access-log.md'), pods: { storefront } });
    assert.equal((await ask(8080, { path: '/x?token=secret' })).status, 200);
    await eventually(() => {
      const [line = '{}', ...others] = page.process.stdout().trimEnd().split('\n');
      const { name, service, path, status, endpoint } = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual(
        [name, service, path, status, endpoint, others],
        ['access', 'storefront', '/x', 200, `${storefront}:8080`, []],
      );
    });
  });
});

test('http/store.yaml: the commands of http.md get the answers that the page shows', requirement, async () => {
  await using _pages = await startPod(createServer(named('pages')), { host: '127.0.0.1', port: 8001 });
  await using _api = await startPod(createServer(named('api')), { host: '127.0.0.1', port: 8002 });
  const manifests = [readPage('docs/http/store.yaml')];
  await using _page = await servePage({ manifests, pods: {}, args: ['--shared-ports', '8080'] });
  const host = 'store.shop.example.com';
  assert.equal((await ask(8080, { path: '/', host })).body, 'pages / ');
  assert.equal((await ask(8080, { path: '/api/', host })).body, 'api / ');
});

describe('the manifests of https.md', requirement, () => {
  const [redirecting = '', severalCertificates = '', encryptingAgain = ''] = manifestsIn('docs/https.md');
  const host = 'shop.example.com';

  test('clients are redirected to HTTPS', async () => {
    const shop = '127.0.1.1';
    await using _pod = await startPod(createServer(named('shop')), { host: shop, port: 8080 });
    await using _page = await servePage({
      manifests: [redirecting],
      objects: [tlsSecret('shop-tls', certificateFor(host))],
      pods: { shop },
    });
    const redirect = await ask(80, { path: '/cart?item=1', host });
    assert.deepEqual([redirect.status, redirect.headers.location], [308, `https://${host}/cart?item=1`]);
    const { status, headers, body } = await askOverTls(host);
    assert.deepEqual([status, headers['strict-transport-security'], body], [200, 'max-age=31536000', 'shop / ']);
  });

  test('each client gets the certificate for its server name and its signature algorithms', async () => {
    const sites = '127.0.1.1';
    await using _pod = await startPod(createServer(named('sites')), { host: sites, port: 8080 });
    const names = { names: [host] };
    await using _page = await servePage({
      manifests: [severalCertificates],
      objects: [
        tlsSecret('shop-ecdsa', makeCertificate({ name: 'ECDSA', ...names })),
        tlsSecret('shop-rsa', makeCertificate({ name: 'RSA', ...names, keyType: 'rsa' })),
        tlsSecret('blog-tls', makeCertificate({ name: 'blog', names: ['blog.example.com'] })),
      ],
      pods: { sites },
    });
    assert.equal(await certificateAt({ servername: host }), 'ECDSA');
    assert.equal(await certificateAt({ servername: host, sigalgs: 'rsa_pss_rsae_sha256' }), 'RSA');
    assert.equal(await certificateAt({ servername: 'blog.example.com' }), 'blog');
  });

  test('requests are encrypted to the pods again', async () => {
    const shop = '127.0.1.1';
    const pods = makeCertificate({ name: 'pods', isAuthority: true });
    const pod = makeCertificate({ name: 'shop.internal', issuer: pods });
    const server = createHttpsServer({ cert: pod.chain, key: pod.key }, named('shop'));
    await using _pod = await startPod(server, { host: shop, port: 8443 });
    await using _page = await servePage({
      manifests: [encryptingAgain],
      objects: [tlsSecret('shop-tls', certificateFor(host)), secret('shop-pods', { 'ca.crt': pods.certificate })],
      pods: { shop },
    });
    const { status, body } = await askOverTls(host);
    assert.deepEqual([status, body], [200, 'shop / ']);
  });
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

interface Question {
  readonly path: string;
  readonly method?: string;
  readonly host?: string;
  readonly accept?: string;
  readonly body?: string;
}

async function ask(
  port: number,
  { path, method = 'GET', host = 'a', accept = '*/*', body }: Question,
): Promise<Answer> {
  const request = startRequest({ port, host: '127.0.0.1', path, method, agent: false, headers: { host, accept } });
  return answerOf(request.end(body));
}

function askOverTls(servername: string): Promise<Answer> {
  const options = { host: '127.0.0.1', servername, ca: authority.certificate, agent: false };
  return answerOf(startTlsRequest({ ...options, headers: { host: servername } }).end());
}

async function answerOf(request: ClientRequest): Promise<Answer> {
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

/** Sends the head of a request and returns the status of its answer. */
async function statusOfHead(port: number, head: string): Promise<number> {
  await using client = await connectClient({ port });
  await client.send(head);
  const [, status = ''] = /^HTTP\/1\.1 ([0-9]{3}) /.exec((await client.take(/\r\n\r\n/)).toString()) ?? [];
  return Number(status);
}

/** Returns the common name of the certificate that a client with these options receives. */
async function certificateAt(options: ConnectionOptions): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port: 443, rejectUnauthorized: false, ...options });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

interface Http2Answer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: string;
}

interface Http2Session extends Disposable {
  /** The protocol that was chosen by ALPN. */
  protocol(): string | false | undefined;
  ask(headers: OutgoingHttpHeaders, body?: string): Promise<Http2Answer>;
}

function openHttp2(url: string, options: SecureClientSessionOptions = {}): Http2Session {
  const session = connectHttp2(url, { ca: authority.certificate, ...options });
  return {
    protocol: () => session.alpnProtocol,
    async ask(headers, body) {
      const stream = session.request(headers);
      let trailers: IncomingHttpHeaders = {};
      stream.on('trailers', (received) => {
        trailers = received;
      });
      stream.end(body);
      const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      return { headers: answer, body: await text(stream), trailers };
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}
