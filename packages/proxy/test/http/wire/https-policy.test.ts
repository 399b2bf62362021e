// Tests how the proxy leads clients from HTTP to HTTPS.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { describe, test } from 'node:test';
import type { Change, TlsTermination } from '@weir/model';
import { connectClient, eventually } from '@weir/testkit';
import { TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { httpEndpoint } from '../../fixtures/http-endpoint.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';
import { type TestService, tableFor, uidOf } from '../../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const HTTP_PORT = 80;
const TLS: TlsTermination = { secret: 'web', ports: [{ port: 443, alpn: [] }], clientCaSecret: null };

const redirecting = (httpsRedirectPort: number): TestService =>
  webService([], {
    port: HTTP_PORT,
    settings: { httpPorts: [HTTP_PORT], tls: { ...TLS, httpsRedirectPort } },
  });

/** Sends a request and returns everything that arrives before the end of the connection. */
async function answerTo({ host, port }: WorkerInTest, request: string, tls?: object): Promise<string> {
  await using client = await connectClient({ host, port, ...(tls && { tls }) });
  await client.send(request);
  assert.deepEqual(await client.ended, { kind: 'end' });
  return client.buffered.toString('latin1');
}

describe('an HTTP port that redirects to HTTPS', () => {
  const locationOf = (answer: string): string | undefined => answer.match(/^Location: (.*)\r$/m)?.[1];

  test('answers with 308 to the same host, path and query, without an endpoint', async () => {
    using worker = await startWorkerInTest(redirecting(443), { port: HTTP_PORT });
    const cases: readonly [request: string, location: string][] = [
      ['GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\n\r\n', 'https://shop.example/a/b?c=d'],
      ['GET / HTTP/1.1\r\nHost: Shop.Example:80\r\n\r\n', 'https://Shop.Example/'],
      ['HEAD //x HTTP/1.1\r\nHost: shop.example\r\n\r\n', 'https://shop.example//x'],
      ['GET http://shop.example?q HTTP/1.1\r\nHost: shop.example\r\n\r\n', 'https://shop.example/?q'],
      ['OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n\r\n', 'https://shop.example/'],
      ['POST /p HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nbody', 'https://shop.example/p'],
      ['GET /v6 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n', 'https://[2001:db8::1]/v6'],
    ];
    for (const [request, location] of cases) {
      const answer = await answerTo(worker, request);
      assert.match(answer, /^HTTP\/1\.1 308 Permanent Redirect\r\n/, request);
      assert.equal(locationOf(answer), location);
    }
    await eventually(() => assert.deepEqual(worker.outcomes(), { completed: cases.length }));
    assert.deepEqual(worker.reported, []);
  });

  test('names the TLS port unless it is 443', async () => {
    using worker = await startWorkerInTest(redirecting(8443), { port: HTTP_PORT });
    const answer = await answerTo(worker, 'GET /a HTTP/1.1\r\nHost: shop.example:80\r\n\r\n');
    assert.equal(locationOf(answer), 'https://shop.example:8443/a');
  });

  test('redirects only the requests of its own Service on a port that Services share, by HTTP/1.1 and HTTP/2', async (context) => {
    await using backend = await httpEndpoint('blog');
    const hosts = (host: string, service: TestService): TestService => ({
      ...service,
      shared: true,
      settings: { ...service.settings, hosts: [host] },
    });
    const shop = hosts('shop.example', redirecting(443));
    const settings = { httpPorts: [HTTP_PORT] };
    const plain = { name: 'blog', namespace: 'other', port: HTTP_PORT, settings };
    const blog = hosts('blog.example', webService([backend.endpoint], plain));
    using worker = await startWorkerInTest(shop, { port: HTTP_PORT });
    const table = tableFor({ a: worker.host }, [shop, blog]);
    const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
    worker.apply({ kind: 'table', changes, slots: [[uidOf(blog), 2]] });
    const request = (host: string): string => `GET /a?b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    const redirected = await answerTo(worker, request('shop.example'));
    assert.match(redirected, /^HTTP\/1\.1 308 /);
    assert.equal(locationOf(redirected), 'https://shop.example/a?b');
    assert.match(await answerTo(worker, request('blog.example')), /^HTTP\/1\.1 200 /);
    assert.match(await answerTo(worker, request('other.example')), /^HTTP\/1\.1 404 /);
    const session = connectHttp2(`http://${worker.host}:${worker.port}`);
    context.after(() => session.destroy());
    const asked: (string | undefined)[][] = [];
    for (const authority of ['shop.example', 'blog.example', 'shop.example']) {
      const stream = session.request({ ':authority': authority, ':path': '/a?b' });
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      stream.resume();
      asked.push([String(headers[':status']), headers.location]);
    }
    const location = 'https://shop.example/a?b';
    assert.deepEqual(asked, [
      ['308', location],
      ['200', undefined],
      ['308', location],
    ]);
    assert.deepEqual(worker.reported, []);
  });

  test('passes on a request whose client uses HTTPS at a trusted proxy', async () => {
    await using backend = await httpEndpoint('web');
    const service = redirecting(443);
    const request = (proto: string): string =>
      `GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Proto: ${proto}\r\nConnection: close\r\n\r\n`;
    const serving = { ...service, endpoints: [backend.endpoint] };
    using trusting = await startWorkerInTest(serving, { port: HTTP_PORT, trustForwarded: ['127.0.0.0/8'] });
    assert.match(await answerTo(trusting, request('https')), /^HTTP\/1\.1 200 /);
    assert.match(await answerTo(trusting, request('http')), /^HTTP\/1\.1 308 /);
    using suspicious = await startWorkerInTest(serving, { port: HTTP_PORT });
    assert.match(await answerTo(suspicious, request('https')), /^HTTP\/1\.1 308 /);
  });

  test('refuses a request without a host, and one that is not valid', async () => {
    using worker = await startWorkerInTest(redirecting(443), { port: HTTP_PORT });
    for (const request of ['GET / HTTP/1.0\r\n\r\n', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'])
      assert.match(await answerTo(worker, request), /^HTTP\/1\.1 400 /);
  });
});

test('adds Strict-Transport-Security only to responses over TLS', async () => {
  await using backend = await httpEndpoint('web');
  const { certificate, settings } = terminatingTls({ alpn: ['http/1.1'], settings: { httpPorts: [PORT] } });
  assert.ok(certificate && settings?.tls);
  const request = 'GET / HTTP/1.1\r\nHost: web.example\r\nConnection: close\r\n\r\n';
  const tls = { ...settings.tls, hstsMaxAgeSeconds: 600 };
  const secured = webService([backend.endpoint], { certificate, settings: { ...settings, tls } });
  using worker = await startWorkerInTest(secured);
  const answer = await answerTo(worker, request, TRUSTING_CLIENT);
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  assert.equal(answer.match(/^Strict-Transport-Security: .*/gim)?.join(), 'Strict-Transport-Security: max-age=600');
  const elsewhere = { ...tls, ports: [{ port: PORT + 1, alpn: [] }] };
  using plain = await startWorkerInTest(webService([backend.endpoint], { settings: { ...settings, tls: elsewhere } }));
  const unencrypted = await answerTo(plain, request);
  assert.match(unencrypted, /^HTTP\/1\.1 200 OK\r\n/);
  assert.doesNotMatch(unencrypted, /Strict-Transport-Security/i);
});
