import assert from 'node:assert/strict';
import { once } from 'node:events';
import https from 'node:https';
import { connect } from 'node:net';
import { test } from 'node:test';
import { type Certificate, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { mountCertificate } from './fixtures/mounted-certificate.ts';
import { startTestConsole } from './fixtures/test-console.ts';

test('with a certificate it answers over TLS, and shows a new one as soon as the files are replaced', async () => {
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

test('a directory without a certificate is refused with what to put there, and nothing stays behind', async () => {
  await using directory = temporaryDirectory('console-tls');
  await assert.rejects(startTestConsole({ tls: directory.path }), {
    code: 'USAGE',
    message: /expected a matching tls\.crt and tls\.key/,
  });
});

test('over TLS the page of the console is the one of https', async () => {
  await using directory = temporaryDirectory('console-tls');
  const own = makeCertificate({ name: '127.0.0.1' });
  await using console = await startTestConsole({ tls: mountCertificate(directory, own, 'one') });
  const { origin, host } = new URL(console.url);
  assert.equal(await statusBy(console.url, own, { origin }), 200);
  assert.equal(await statusBy(console.url, own, { origin: `http://${host}` }), 403);
});

test('a handshake that is never finished does not hold it up when it closes', { timeout: 8_000 }, async () => {
  await using directory = temporaryDirectory('console-tls');
  const own = makeCertificate({ name: '127.0.0.1' });
  const console = await startTestConsole({ tls: mountCertificate(directory, own, 'one') });
  const { hostname, port } = new URL(console.url);
  const silent = connect(Number(port), hostname);
  const closed = once(silent, 'close');
  silent.once('error', () => undefined);
  await once(silent, 'connect');
  // Taken in their order: the server has the silent one, too.
  assert.equal(await statusBy(console.url, own), 200);
  // Else only when the time of a handshake is over, after 10 s.
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
