// Whom TLS that ends here shows itself to be, whom it lets in, and who may resume where.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { Sealer, Secret } from '@weir/runtime';
import { type Certificate, connectClient, echoServer, eventually, makeCertificate } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { AUTHORITY, certificateEntryFor, SERVER, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';
import { captureNodeClientHello } from '../protocol/client-hello-bytes.ts';

const CLIENTS = makeCertificate({ name: 'Clients', isAuthority: true });
const OTHERS = makeCertificate({ name: 'Others', isAuthority: true });
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface TlsClientResult {
  readonly socket: TLSSocket;
  /** Of TLS 1.3 they come after the handshake. */
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

/** A client that is served: it has its echo. */
async function connectTls(worker: WorkerInTest, tls: ConnectionOptions = {}): Promise<TlsClientResult> {
  const socket = connect({ host: worker.host, port: worker.port, ...TRUSTING_CLIENT, ...tls });
  let session: Buffer | undefined;
  socket.on('session', (given: Buffer) => {
    session = given;
  });
  await once(socket, 'secureConnect');
  await echoes(socket);
  return { socket, session, isResumed: socket.isSessionReused() };
}

async function echoes(socket: TLSSocket): Promise<void> {
  socket.write('hello');
  const [echoed] = (await once(socket, 'data')) as [Buffer];
  assert.equal(echoed.toString(), 'hello');
}

/** How a client that must not be served learns it. */
async function refusal(worker: WorkerInTest, tls: ConnectionOptions = {}): Promise<string> {
  const socket = connect({ host: worker.host, port: worker.port, ...TRUSTING_CLIENT, ...tls });
  socket.on('secureConnect', () => socket.write('hello'));
  const code = await new Promise<string>((resolve) => {
    socket.on('data', () => resolve('served'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve('closed'));
  });
  socket.destroy();
  return code;
}

const clientCertificateOptions = ({ chain, key }: Certificate): ConnectionOptions => ({ cert: chain, key });
const clientOf = (issuer: Certificate, more: object = {}): Certificate =>
  makeCertificate({ name: 'buyer', usage: 'client', issuer, ...more });

test('ALPN: the first of the endpoint’s that the client has; none in common is refused; who asks for none is served', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], terminatingTls({ alpn: ['h2', 'http/1.1'] })),
  );
  for (const [offered, agreed] of [
    [['http/1.1', 'h2'], 'h2'],
    [['http/1.1'], 'http/1.1'],
    [undefined, false],
  ] as const) {
    const { socket } = await connectTls(worker, offered === undefined ? {} : { ALPNProtocols: [...offered] });
    assert.equal(socket.alpnProtocol, agreed);
    socket.destroy();
  }
  assert.match(await refusal(worker, { ALPNProtocols: ['smtp'] }), /NO_APPLICATION_PROTOCOL/);
  await eventually(() => assert.equal(worker.outcomes()['tls-handshake-failed'], 1));
  using plain = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()));
  const { socket } = await connectTls(plain, { ALPNProtocols: ['smtp'] });
  assert.equal(socket.alpnProtocol, false);
  socket.destroy();
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  const of = { minVersion: version, maxVersion: version } as const;

  test(`${version}: where client certificates are asked for, only who shows one of these CAs is served`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })));
    const { socket } = await connectTls(worker, { ...of, ...clientCertificateOptions(clientOf(CLIENTS)) });
    socket.destroy();
    await eventually(() => assert.equal(worker.row[ACTIVE], 0));
    const before = { accepted: backend.acceptedConnections, outcomes: worker.outcomes() };
    const past = { notBefore: new Date(Date.now() - 3 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) };
    await refusal(worker, of);
    await refusal(worker, { ...of, ...clientCertificateOptions(clientOf(OTHERS)) });
    await refusal(worker, { ...of, ...clientCertificateOptions(clientOf(CLIENTS, past)) });
    await eventually(() => assert.equal(worker.row[ACTIVE], 0));
    assert.deepEqual(worker.outcomes(), { ...before.outcomes, 'tls-handshake-failed': 3 });
    assert.equal(backend.acceptedConnections, before.accepted, 'no endpoint hears of those');
    assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.reported], [5, 5, []]);
  });

  test(`${version}: a session is resumed at another worker, and nowhere else: not at another Service, past another client CA, on another day`, async () => {
    await using backend = await echoServer();
    const service = webService([endpointOf(backend)], terminatingTls());
    let now = Date.now();
    const wallClock = (): number => now;
    using worker = await startWorkerInTest(service, { wallClock });
    using other = await startWorkerInTest(service, { wallClock });
    using stranger = await startWorkerInTest({ ...service, name: 'other' }, { wallClock });
    using asking = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })), {
      wallClock,
    });
    const first = await connectTls(worker, of);
    assert.ok(first.session);
    first.socket.destroy();
    const isResumed = async (at: WorkerInTest, more: ConnectionOptions = {}): Promise<boolean> => {
      const { socket, isResumed: answer } = await connectTls(at, { ...of, session: first.session as Buffer, ...more });
      socket.destroy();
      return answer;
    };
    assert.deepEqual([await isResumed(worker), await isResumed(other)], [true, true]);
    assert.equal(await isResumed(stranger), false);
    assert.equal(await isResumed(asking, clientCertificateOptions(clientOf(CLIENTS))), false);
    assert.notEqual(await refusal(asking, { ...of, session: first.session }), 'served');
    now += DAY_MS;
    assert.deepEqual([await isResumed(worker), await isResumed(other)], [false, false]);
  });

  test(`${version}: a session that is resumed past a client CA still shows its client, as long as that is good`, async () => {
    await using backend = await echoServer();
    // A day of its own, so that no midnight comes between: with it the tickets change.
    const morning = (Math.floor(Date.now() / DAY_MS) + 10) * DAY_MS;
    let now = morning;
    const service = webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS }));
    using worker = await startWorkerInTest(service, { wallClock: () => now });
    const good = await connectTls(worker, { ...of, ...clientCertificateOptions(clientOf(CLIENTS)) });
    assert.ok(good.session);
    const again = await connectTls(worker, { ...of, session: good.session });
    assert.equal(again.isResumed, true);
    const soon = clientOf(CLIENTS, { notAfter: new Date(morning + HOUR_MS) });
    const brief = await connectTls(worker, { ...of, ...clientCertificateOptions(soon) });
    assert.ok(brief.session);
    const { session } = brief;
    const still = await connectTls(worker, { ...of, session });
    assert.equal(still.isResumed, true);
    now += 2 * HOUR_MS;
    assert.notEqual(await refusal(worker, { ...of, session }), 'served');
    for (const { socket } of [good, again, brief, still]) socket.destroy();
  });
}

test('a renewed certificate is shown from the next handshake on, and what is open goes on', async () => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], terminatingTls());
  using worker = await startWorkerInTest(service);
  const before = await connectTls(worker);
  const renewed = makeCertificate({ name: 'web.example', issuer: AUTHORITY });
  worker.serve({ ...service, certificate: certificateEntryFor(renewed) });
  const after = await connectTls(worker);
  assert.notEqual(after.socket.getPeerX509Certificate()?.fingerprint256, undefined);
  assert.notEqual(
    after.socket.getPeerX509Certificate()?.fingerprint256,
    before.socket.getPeerX509Certificate()?.fingerprint256,
  );
  await echoes(before.socket);
  for (const { socket } of [before, after]) socket.destroy();
});

test('without a certificate that can be used clients get an alert, nothing goes on in the clear, and it is told once', async () => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], terminatingTls());
  const { certificate: _none, ...bare } = service;
  const { sealedKey: _key, ...keyless } = certificateEntryFor(SERVER);
  const strange = new Sealer(new Secret('the secret of another fleet, as long'));
  const other = makeCertificate({ name: 'web.example', issuer: AUTHORITY });
  using worker = await startWorkerInTest(bare);
  const rounds = [
    bare,
    { ...service, certificate: keyless },
    { ...service, certificate: certificateEntryFor(SERVER, { sealer: strange }) },
    { ...service, certificate: { ...certificateEntryFor(other), chain: SERVER.chain } },
  ];
  for (const round of rounds) {
    worker.serve(round);
    for (const _time of [1, 2]) assert.match(await refusal(worker), /INTERNAL_ERROR/);
  }
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 8 }));
  const told = worker.answers.flatMap((answer) => (answer.kind === 'certificate-fault' ? answer.report : []));
  assert.deepEqual(
    told.map(({ service: name, why }) => [name, why]),
    ['no-key', 'key-not-opened', 'not-accepted'].map((why) => ['shop/web', why]),
  );
  assert.doesNotMatch(JSON.stringify(told), /PRIVATE|BEGIN/);
  assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], backend.acceptedConnections], [0, 0, 0]);
  worker.serve(service);
  const { socket } = await connectTls(worker);
  socket.destroy();
});

test('a proxy without the secret of the fleet refuses them, and speaks of it elsewhere', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { sealer: undefined });
  assert.match(await refusal(worker), /INTERNAL_ERROR/);
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 1 }));
  assert.deepEqual(
    worker.answers.filter(({ kind }) => kind === 'certificate-fault'),
    [],
  );
});

test('a name of somebody else gets an alert, and who speaks no TLS gets nothing', async () => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], terminatingTls({ settings: { hosts: ['web.example'] } }));
  using worker = await startWorkerInTest(service);
  assert.match(await refusal(worker, { servername: 'other.example' }), /UNRECOGNIZED_NAME/);
  await using plain = await connectClient({ host: worker.host, port: worker.port });
  await plain.send('GET / HTTP/1.1\r\n\r\n');
  assert.equal((await plain.ended).kind, 'error');
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'unknown-host': 1, 'bad-client-hello': 1 }));
  assert.equal(backend.acceptedConnections, 0);
});

const HEADER = 'PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n';
const TRUSTED = { trustProxyProtocol: ['127.0.0.0/8'] } as const;

test('behind a load balancer its PROXY header comes first, and source ranges are of the client that it names', async () => {
  await using backend = await echoServer();
  const service = (sourceRanges: readonly string[]): TestService =>
    webService([endpointOf(backend)], terminatingTls({ settings: { sourceRanges } }));
  using worker = await startWorkerInTest(service(['192.0.2.0/24']), TRUSTED);
  const behind = (): TLSSocket => {
    const raw = connectPlain({ host: worker.host, port: worker.port });
    raw.write(HEADER);
    const socket = connect({ socket: raw, ...TRUSTING_CLIENT });
    socket.on('error', () => undefined);
    return socket;
  };
  const allowed = behind();
  await once(allowed, 'secureConnect');
  await echoes(allowed);
  allowed.destroy();
  worker.serve(service(['203.0.113.0/24']));
  const kept = behind();
  await new Promise((resolve) => kept.once('close', resolve));
  await eventually(() => assert.equal(worker.outcomes()['source-range'], 1));
});

test('who came before TLS was to end here is not led on undecrypted, and whom nobody decrypts any more is not led on at all', async () => {
  await using backend = await echoServer();
  const plain = webService([endpointOf(backend)]);
  const here = webService([endpointOf(backend)], terminatingTls());
  using worker = await startWorkerInTest(plain, TRUSTED);
  await using early = await connectClient({ host: worker.host, port: worker.port });
  await eventually(() => assert.equal(worker.row[ACTIVE], 1));
  worker.serve(here);
  await early.send(`${HEADER}in the clear`);
  assert.equal((await early.ended).kind, 'error');
  assert.deepEqual(worker.outcomes(), { 'no-listener': 1 });
  using other = await startWorkerInTest(here);
  await using meeting = await connectClient({ host: other.host, port: other.port });
  await meeting.send(await captureNodeClientHello(TRUSTING_CLIENT));
  await meeting.take(5);
  other.serve(plain);
  meeting.reset();
  await eventually(() => assert.deepEqual(other.outcomes(), { 'tls-handshake-failed': 1 }));
  assert.equal(backend.acceptedConnections, 0);
});

test('nothing is renegotiated', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()));
  const { socket } = await connectTls(worker, { maxVersion: 'TLSv1.2' });
  const error = await new Promise<Error | null>((resolve) => {
    socket.on('error', resolve);
    socket.renegotiate({}, resolve);
  });
  assert.match(String((error as NodeJS.ErrnoException | null)?.code), /NO_RENEGOTIATION/);
  socket.destroy();
});
