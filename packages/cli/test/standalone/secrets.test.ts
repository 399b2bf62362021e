import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { type Certificate, echoServer, eventually, freePort, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirProcess, startWeirProcess } from '../fixtures/weir-process.ts';

const secret = ({ chain, key }: Certificate): unknown => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'web-tls', namespace: 'shop' },
  type: 'kubernetes.io/tls',
  stringData: { 'tls.crt': chain, 'tls.key': key },
});
const annotations = { 'weir.dev/tls-secret': 'web-tls', 'weir.dev/tls-ports': '8080' };
const made = makeCertificate({ name: 'shop.example.com' });
const keyLine = made.key.split('\n')[1] ?? '';

test('weir translate prints the certificate but never the private key', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { annotations }), endpointSlice('web', 18_080), secret(made));
  const { code, json, stdout } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
  assert.equal(code, 0, stdout);
  assert.deepEqual(json.problems, []);
  assert.deepEqual(json.ignored, {});
  const [certificate] = json.table.certificates;
  assert.equal(certificate.chain, made.chain);
  assert.deepEqual(Object.keys(certificate).sort(), [
    'chain',
    'clientAuthorities',
    'id',
    'keyDigest',
    'kind',
    'notAfter',
    'service',
  ]);
  assert.ok(keyLine.length > 40 && !stdout.includes(keyLine));
});

test('weir translate reports a missing, expired or invalid certificate', async () => {
  await using files = manifestDirectory();
  const reasonOf = async (...more: readonly unknown[]): Promise<string> => {
    files.write('shop.yaml', service('web', { annotations }), endpointSlice('web', 18_080), ...more);
    const { json } = await runWeirProcess(['translate', '-f', files.path, '-o', 'json']);
    const [{ accepted }] = json.statuses;
    return `${accepted.reason}: ${accepted.message}`;
  };
  assert.match(await reasonOf(), /^SecretNotFound: /);
  const old = new Date('2020-01-01T00:00:00Z');
  assert.match(
    await reasonOf(secret(makeCertificate({ name: 'old', notBefore: old }))),
    /^InvalidCertificate: .*2020-01-31/,
  );
  assert.match(
    await reasonOf(secret({ ...made, key: 'x' })),
    /^InvalidCertificate: .*has a tls\.key that does not contain a PEM private key/,
  );
});

test('keeps the fleet secret in the state directory, readable only by its owner', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  files.write('shop.yaml', service('web', { port: await freePort() }), secret(made));
  const args = ['standalone', '-f', files.path, '--workers', '1', '--console', 'off', '--state', state.path];
  const path = join(state.path, 'fleet-secret');
  const started = async (): Promise<string> => {
    await using running = await startWeirProcess(args, { readyWhen: /^ready/m });
    assert.doesNotMatch(running.output(), /Secrets are not read|fleet-secret/);
    return readFileSync(path, 'utf8');
  };
  const first = await started();
  assert.match(first, /^[\w-]{43}\n$/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(await started(), first);
  writeFileSync(path, 'short');
  const { code, output } = await runWeirProcess(args);
  assert.equal(code, 2);
  assert.match(
    output,
    /^weir: --state: \S+\/fleet-secret is damaged; restore the file, or delete it so that a new secret is created/,
  );
  rmSync(path);
  await using anew = await startWeirProcess(args, { readyWhen: /^ready/m });
  assert.match(
    anew.output(),
    /^warning: the file fleet-secret in the --state directory was missing, so a new secret was created: certificates/m,
  );
  assert.notEqual(readFileSync(path, 'utf8'), first);
});

test('refuses a short WEIR_FLEET_SECRET without printing it', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web'));
  const args = ['standalone', '-f', files.path, '--workers', '1', '--console', 'off'];
  const { code, output } = await runWeirProcess(args, { WEIR_FLEET_SECRET: 'swordfish' });
  assert.equal(code, 2);
  assert.match(output, /^weir: WEIR_FLEET_SECRET is \[redacted\]; use a secret of at least 32 characters[^\n]*\n$/);
  assert.doesNotMatch(output, /swordfish/);
});

test(
  'with Redis, reads Secrets only if WEIR_FLEET_SECRET is set, and warns otherwise',
  requireProgram('redis'),
  async () => {
    await using redis = await startRedis();
    await using files = manifestDirectory();
    const port = await freePort();
    const web = service('web', { port, annotations: { ...annotations, 'weir.dev/tls-ports': String(port) } });
    const ending = makeCertificate({ name: 'shop.example.com', notBefore: new Date(Date.now() - 29 * 86_400_000) });
    files.write('shop.yaml', web, endpointSlice('web', 18_080), secret(ending));
    const args = ['standalone', '-f', files.path, '--workers', '1', '--console', 'off', '--redis', redis.url];
    {
      await using running = await startWeirProcess(args, { readyWhen: /^ready/m });
      assert.match(
        running.output(),
        /^warning: Secrets are not read, because WEIR_FLEET_SECRET is not set: .*set WEIR_FLEET_SECRET to the same secret/m,
      );
      await running.waitForOutput(/SecretForbidden/);
    }
    const env = { WEIR_FLEET_SECRET: 'a secret of this fleet, long enough' };
    await using running = await startWeirProcess(args, { readyWhen: /^ready/m, env });
    await running.waitForOutput(/CertificateExpiring/);
    assert.doesNotMatch(running.output(), /Secrets are not read|SecretForbidden/);
  },
);

test('serves the certificate of a Secret in a file, after a renewal and after a restart as well', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  await using backend = await echoServer();
  const port = await freePort();
  const ca = makeCertificate({ name: 'shop CA', isAuthority: true });
  const web = service('web', { port, annotations: { ...annotations, 'weir.dev/tls-ports': String(port) } });
  const writeWith = (certificate: Certificate): void =>
    files.write('shop.yaml', web, endpointSlice('web', backend.port), secret(certificate));
  const [first, renewed] = [1, 2].map(() => makeCertificate({ name: 'shop.example.com', issuer: ca }));
  assert.ok(first && renewed);
  writeWith(first);
  {
    await using _running = await startTestStandalone(files, ['--state', state.path]);
    assert.deepEqual(await echoOverTls({ port, ca }), ['hello', first.certificate]);
    writeWith(renewed);
    await eventually(async () => assert.deepEqual(await echoOverTls({ port, ca }), ['hello', renewed.certificate]));
  }
  await using _again = await startTestStandalone(files, ['--state', state.path]);
  assert.deepEqual(await echoOverTls({ port, ca }), ['hello', renewed.certificate]);
});

/** Sends a message over TLS. Returns the echo and the certificate that the server presented. */
async function echoOverTls({ port, ca }: { readonly port: number; readonly ca: Certificate }): Promise<unknown> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'shop.example.com', ca: ca.certificate });
  try {
    await once(socket, 'secureConnect');
    const presented = String(socket.getPeerX509Certificate());
    socket.end('hello');
    return [await text(socket), presented];
  } finally {
    socket.destroy();
  }
}
