// Tests the admin server over TLS. The certificates are replaced as in a mounted Secret.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { get, type RequestOptions } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import {
  type AdminServer,
  type Clock,
  createAdminServer,
  createLogger,
  Health,
  ManualClock,
  Secret,
  systemClock,
  UsageError,
} from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import { type Certificate, makeCertificate, temporaryDirectory } from '@weir/testkit';

const TOKEN = 'a-token-of-24-characters';
const AUTHORITY = makeCertificate({ name: 'Admin CA', isAuthority: true });
const certificateFor = (name: string): Certificate =>
  makeCertificate({ name, names: ['127.0.0.1'], issuer: AUTHORITY });

/** A directory like a mounted Secret: its files are links into a directory that `swap` replaces atomically. */
class Mounted {
  readonly path: string;
  #version = 0;

  constructor(path: string, first: Certificate) {
    this.path = path;
    this.swap(first.certificate, first.key);
    for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('..data', file), join(path, file));
  }

  swap(certificate: string, key: string): void {
    this.#version += 1;
    const version = `..version-${this.#version}`;
    mkdirSync(join(this.path, version));
    writeFileSync(join(this.path, version, 'tls.crt'), certificate);
    writeFileSync(join(this.path, version, 'tls.key'), key);
    symlinkSync(version, join(this.path, '..data_tmp'));
    renameSync(join(this.path, '..data_tmp'), join(this.path, '..data'));
  }

  remove(): void {
    rmSync(join(this.path, '..data'));
  }
}

function serverOn(tls: string, lines: string[] = [], clock: Clock = systemClock): AdminServer {
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  const token = new Secret(TOKEN);
  const health = new Health();
  return createAdminServer({ host: '127.0.0.1', port: 0, health, metrics: createMetrics(), tls, token, log, clock });
}

async function start(server: AdminServer): Promise<AsyncDisposable & { readonly port: number }> {
  await server.start(new AbortController().signal);
  return { port: server.address().port, [Symbol.asyncDispose]: async () => server.close() };
}

async function statusOf(port: number, path: string, headers: RequestOptions['headers'] = {}): Promise<number> {
  const request = get({ host: '127.0.0.1', port, path, headers, ca: AUTHORITY.certificate, agent: false });
  const [response] = await once(request, 'response');
  response.resume();
  return response.statusCode;
}

/** Returns the common name of the server's certificate. */
async function certificateNameAt(port: number, options: ConnectionOptions = {}): Promise<string> {
  const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca: AUTHORITY.certificate, ...options });
  await once(socket, 'secureConnect');
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.destroy();
  return name;
}

test('answers over TLS only, and requires the token', async () => {
  await using directory = temporaryDirectory('admin');
  const mounted = new Mounted(directory.path, certificateFor('first'));
  await using admin = await start(serverOn(mounted.path));
  assert.equal(await statusOf(admin.port, '/healthz'), 200);
  assert.equal(await statusOf(admin.port, '/metrics'), 401);
  assert.equal(await statusOf(admin.port, '/metrics', { authorization: `Bearer ${TOKEN}` }), 200);
  await assert.rejects(certificateNameAt(admin.port, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }));
  const plain = connectPlain({ host: '127.0.0.1', port: admin.port });
  let answer = '';
  plain.setEncoding('latin1').on('data', (text) => {
    answer += text;
  });
  plain.on('error', () => undefined);
  plain.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(plain, 'close');
  assert.doesNotMatch(answer, /live/);
});

test('uses a replaced certificate for the next connection', async () => {
  await using directory = temporaryDirectory('admin');
  const mounted = new Mounted(directory.path, certificateFor('first'));
  const lines: string[] = [];
  await using admin = await start(serverOn(mounted.path, lines));
  assert.equal(await certificateNameAt(admin.port), 'first');
  const second = certificateFor('second');
  mounted.swap(second.certificate, second.key);
  assert.equal(await certificateNameAt(admin.port), 'second');
  assert.equal(await certificateNameAt(admin.port), 'second');
  assert.equal(lines.length, 1);
});

test('keeps the last certificate and warns once if the new pair is unusable, and recovers', async () => {
  await using directory = temporaryDirectory('admin');
  const first = certificateFor('first');
  const mounted = new Mounted(directory.path, first);
  const lines: string[] = [];
  await using admin = await start(serverOn(mounted.path, lines));
  const second = certificateFor('second');
  const breaks = [
    () => mounted.swap(second.certificate, first.key),
    () => mounted.swap('no certificate', second.key),
    () => mounted.remove(),
  ];
  for (const [index, broken] of breaks.entries()) {
    broken();
    assert.equal(await certificateNameAt(admin.port), 'first');
    assert.equal(await certificateNameAt(admin.port, { maxVersion: 'TLSv1.2' }), 'first');
    assert.equal(lines.length, index + 1);
    assert.match(String(lines[index]), /"warn".*failed to reload the certificate; keeping the previous certificate/);
  }
  mounted.swap(second.certificate, second.key);
  assert.equal(await certificateNameAt(admin.port), 'second');
});

test('keeps the last certificate when the server listens again and the files are gone', async () => {
  await using directory = temporaryDirectory('admin');
  const mounted = new Mounted(directory.path, certificateFor('first'));
  const server = serverOn(mounted.path);
  await (await start(server))[Symbol.asyncDispose]();
  mounted.remove();
  await using admin = await start(server);
  assert.equal(await certificateNameAt(admin.port), 'first');
});

test('refuses to start with an unusable pair', async () => {
  await using directory = temporaryDirectory('admin');
  const assertRefused = async (message: RegExp): Promise<void> =>
    assert.rejects(
      async () => serverOn(directory.path).start(new AbortController().signal),
      (error) => error instanceof UsageError && message.test(error.message) && error.message.includes(directory.path),
    );
  await assertRefused(/ENOENT.*; expected a matching tls.crt and tls.key in PEM format$/);
  const [one, other] = [certificateFor('one'), certificateFor('other')];
  writeFileSync(join(directory.path, 'tls.crt'), one.certificate);
  writeFileSync(join(directory.path, 'tls.key'), other.key);
  await assertRefused(/key values mismatch/);
});

test('closes within a second although a client has connected and sent nothing', async () => {
  await using directory = temporaryDirectory('admin');
  const mounted = new Mounted(directory.path, certificateFor('first'));
  const clock = new ManualClock();
  const server = serverOn(mounted.path, [], clock);
  const admin = await start(server);
  const silent = connectPlain({ host: '127.0.0.1', port: admin.port });
  await once(silent, 'connect');
  silent.on('error', () => undefined);
  assert.equal(await certificateNameAt(admin.port), 'first');
  const closing = server.close();
  await clock.advance(1_000);
  await Promise.all([closing, once(silent, 'close')]);
});
