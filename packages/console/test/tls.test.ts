import assert from 'node:assert/strict';
import { once } from 'node:events';
import https from 'node:https';
import { connect } from 'node:net';
import { test } from 'node:test';
import { type Certificate, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { mountCertificate } from './fixtures/mounted-certificate.ts';
import { startTestConsole } from './fixtures/test-console.ts';

test('serves TLS and reloads a replaced certificate', async () => {
  await using directory = temporaryDirectory('console-tls');
  const [first, second] = [makeCertificate({ name: '127.0.0.1' }), makeCertificate({ name: '127.0.0.1' })];
  const tls = mountCertificate(directory, first, 'one');
  await using console = await startTestConsole({ tls });
  assert.match(console.url, /^https:/);
  assert.equal(await statusBy(console.url, first), 200);
  mountCertificate(directory, second, 'two');
  assert.equal(await statusBy(console.url, second), 200);
  await assert.rejects(statusBy(console.url, first), /self-signed certificate|unable to verify/);
});

test('refuses a directory without a certificate and names the missing files', async () => {
  await using directory = temporaryDirectory('console-tls');
  await assert.rejects(startTestConsole({ tls: directory.path }), {
    code: 'USAGE',
    message: /expected a matching tls\.crt and tls\.key/,
  });
});

test('accepts only its own https origin over TLS', async () => {
  await using directory = temporaryDirectory('console-tls');
  const certificate = makeCertificate({ name: '127.0.0.1' });
  await using console = await startTestConsole({ tls: mountCertificate(directory, certificate, 'one') });
  const { origin, host } = new URL(console.url);
  assert.equal(await statusBy(console.url, certificate, { origin }), 200);
  assert.equal(await statusBy(console.url, certificate, { origin: `http://${host}` }), 403);
});

test('closes without waiting for an unfinished handshake', { timeout: 8_000 }, async () => {
  await using directory = temporaryDirectory('console-tls');
  const certificate = makeCertificate({ name: '127.0.0.1' });
  const console = await startTestConsole({ tls: mountCertificate(directory, certificate, 'one') });
  const { hostname, port } = new URL(console.url);
  const silent = connect(Number(port), hostname);
  const closed = once(silent, 'close');
  silent.once('error', () => undefined);
  await once(silent, 'connect');
  // The server accepts connections in order. After this response, it has also accepted the connection `silent`.
  assert.equal(await statusBy(console.url, certificate), 200);
  // Without `OpenSockets`, the console would close only after the handshake timeout of 10 s.
  await console[Symbol.asyncDispose]();
  await closed;
});

function statusBy(url: string, { certificate }: Certificate, headers: Record<string, string> = {}): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  https
    .get(new URL('/readyz', url), { ca: certificate, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
    .once('error', reject);
  return promise;
}
