// Tests TLS termination: server certificates, client certificates and session resumption.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { Sealer, Secret } from '@weir/runtime';
import { type Certificate, connectClient, echoServer, eventually, makeCertificate } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { AUTHORITY, certificateEntryFor, SERVER, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { testTls } from '../fixtures/tls-tests.ts';
import type { WorkerInTest } from '../fixtures/worker-in-test.ts';
import { captureNodeClientHello } from '../protocol/client-hello-bytes.ts';

const CLIENTS = makeCertificate({ name: 'Clients', isAuthority: true });
const OTHERS = makeCertificate({ name: 'Others', isAuthority: true });
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface TlsClientResult {
  readonly socket: TLSSocket;
  /** The last session ticket that arrived before the echo. In TLS 1.3, tickets arrive after the handshake. */
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

/** Connects a client and waits for its echo. */
async function connectTls(worker: WorkerInTest, tls: ConnectionOptions = {}): Promise<TlsClientResult> {
  const socket = connect({ host: worker.host, port: worker.port, ...TRUSTING_CLIENT, ...tls });
  let session: Buffer | undefined;
  socket.on('session', (ticket: Buffer) => {
    session = ticket;
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

/**
 * Returns `served` if the client gets an echo. Otherwise returns the client's error code, or `closed` if there was no
 * error.
 */
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
const clientOf = (issuer: Certificate, validity: object = {}): Certificate =>
  makeCertificate({ name: 'buyer', usage: 'client', issuer, ...validity });

testTls(
  'ALPN: prefers the order of the Service, refuses a client without a common protocol, and serves a client without ALPN',
  async (startWorkerInTest) => {
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
  },
);

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  const only = { minVersion: version, maxVersion: version } as const;

  testTls(
    `${version}: serves only clients with a certificate of the client CA if the Service requires one`,
    async (startWorkerInTest) => {
      await using backend = await echoServer();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })));
      const { socket } = await connectTls(worker, { ...only, ...clientCertificateOptions(clientOf(CLIENTS)) });
      socket.destroy();
      await eventually(() => assert.equal(worker.row[ACTIVE], 0));
      const before = { accepted: backend.acceptedConnections, outcomes: worker.outcomes() };
      const expired = { notBefore: new Date(Date.now() - 3 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) };
      await refusal(worker, only);
      await refusal(worker, { ...only, ...clientCertificateOptions(clientOf(OTHERS)) });
      await refusal(worker, { ...only, ...clientCertificateOptions(clientOf(CLIENTS, expired)) });
      await eventually(() => assert.equal(worker.row[ACTIVE], 0));
      assert.deepEqual(worker.outcomes(), { ...before.outcomes, 'tls-handshake-failed': 3 });
      assert.equal(backend.acceptedConnections, before.accepted, 'no endpoint is connected');
      assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.reported], [5, 5, []]);
    },
  );

  testTls(
    `${version}: resumes a session at any worker, but not at another Service, with another client CA or on another day`,
    async (startWorkerInTest) => {
      await using backend = await echoServer();
      const service = webService([endpointOf(backend)], terminatingTls());
      let now = Date.now();
      const wallClock = (): number => now;
      using worker = await startWorkerInTest(service, { wallClock });
      using other = await startWorkerInTest(service, { wallClock });
      using otherService = await startWorkerInTest({ ...service, name: 'other' }, { wallClock });
      using withClientCa = await startWorkerInTest(
        webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS })),
        {
          wallClock,
        },
      );
      const first = await connectTls(worker, only);
      assert.ok(first.session);
      first.socket.destroy();
      const isResumed = async (at: WorkerInTest, tls: ConnectionOptions = {}): Promise<boolean> => {
        const second = await connectTls(at, { ...only, session: first.session as Buffer, ...tls });
        second.socket.destroy();
        return second.isResumed;
      };
      assert.deepEqual([await isResumed(worker), await isResumed(other)], [true, true]);
      assert.equal(await isResumed(otherService), false);
      assert.equal(await isResumed(withClientCa, clientCertificateOptions(clientOf(CLIENTS))), false);
      assert.notEqual(await refusal(withClientCa, { ...only, session: first.session }), 'served');
      now += DAY_MS;
      assert.deepEqual([await isResumed(worker), await isResumed(other)], [false, false]);
    },
  );

  testTls(
    `${version}: a resumed session is accepted only as long as its client certificate is valid`,
    async (startWorkerInTest) => {
      await using backend = await echoServer();
      // The start of a day, because the ticket keys change at midnight and the test must not cross midnight.
      const morning = (Math.floor(Date.now() / DAY_MS) + 10) * DAY_MS;
      let now = morning;
      const service = webService([endpointOf(backend)], terminatingTls({ authority: CLIENTS }));
      using worker = await startWorkerInTest(service, { wallClock: () => now });
      const valid = await connectTls(worker, { ...only, ...clientCertificateOptions(clientOf(CLIENTS)) });
      assert.ok(valid.session);
      const resumed = await connectTls(worker, { ...only, session: valid.session });
      assert.equal(resumed.isResumed, true);
      const expiringSoon = clientOf(CLIENTS, { notAfter: new Date(morning + HOUR_MS) });
      const short = await connectTls(worker, { ...only, ...clientCertificateOptions(expiringSoon) });
      assert.ok(short.session);
      const { session } = short;
      const resumedShort = await connectTls(worker, { ...only, session });
      assert.equal(resumedShort.isResumed, true);
      now += 2 * HOUR_MS;
      assert.notEqual(await refusal(worker, { ...only, session }), 'served');
      for (const { socket } of [valid, resumed, short, resumedShort]) socket.destroy();
    },
  );
}

testTls(
  'uses a renewed certificate from the next handshake on, and keeps open connections',
  async (startWorkerInTest) => {
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
  },
);

testTls(
  'without a usable certificate sends an alert, relays nothing, and reports each fault once',
  async (startWorkerInTest) => {
    await using backend = await echoServer();
    const service = webService([endpointOf(backend)], terminatingTls());
    const { certificate: _none, ...withoutCertificate } = service;
    const { sealedKey: _key, ...withoutKey } = certificateEntryFor(SERVER);
    const otherSealer = new Sealer(new Secret('the secret of another fleet, as long'));
    const otherCertificate = makeCertificate({ name: 'web.example', issuer: AUTHORITY });
    using worker = await startWorkerInTest(withoutCertificate);
    const services = [
      withoutCertificate,
      { ...service, certificate: withoutKey },
      { ...service, certificate: certificateEntryFor(SERVER, { sealer: otherSealer }) },
      { ...service, certificate: { ...certificateEntryFor(otherCertificate), chain: SERVER.chain } },
    ];
    for (const faulty of services) {
      worker.serve(faulty);
      for (const _time of [1, 2]) assert.match(await refusal(worker), /INTERNAL_ERROR/);
    }
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 8 }));
    const reports = worker.answers.flatMap((answer) => (answer.kind === 'certificate-fault' ? answer.report : []));
    assert.deepEqual(
      reports.map(({ service: name, why }) => [name, why]),
      ['no-key', 'key-not-opened', 'not-accepted'].map((why) => ['shop/web', why]),
    );
    assert.doesNotMatch(JSON.stringify(reports), /PRIVATE|BEGIN/);
    assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], backend.acceptedConnections], [0, 0, 0]);
    worker.serve(service);
    const { socket } = await connectTls(worker);
    socket.destroy();
  },
);

testTls(
  'a proxy without the fleet’s secret refuses clients, and reports no certificate fault',
  async (startWorkerInTest) => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { sealer: undefined });
    assert.match(await refusal(worker), /INTERNAL_ERROR/);
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 1 }));
    assert.deepEqual(
      worker.answers.filter(({ kind }) => kind === 'certificate-fault'),
      [],
    );
  },
);

testTls('sends an alert for an unknown server name, and nothing to a client without TLS', async (startWorkerInTest) => {
  await using backend = await echoServer();
  const service = webService([endpointOf(backend)], terminatingTls({ settings: { hosts: ['web.example'] } }));
  using worker = await startWorkerInTest(service);
  assert.match(await refusal(worker, { servername: 'other.example' }), /UNRECOGNIZED_NAME/);
  await using plain = await connectClient({ host: worker.host, port: worker.port });
  await plain.send('GET / HTTP/1.1\r\n\r\n');
  assert.equal((await plain.ended).kind, 'error');
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'unknown-host': 1, 'bad-client-hello': 1 }));
  assert.equal(backend.acceptedConnections, 0);
  // Only decrypted bytes are counted.
  assert.deepEqual([worker.row[RECEIVED], worker.row[SENT]], [0, 0]);
});

const HEADER = 'PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n';
const TRUSTED = { trustProxyProtocol: ['127.0.0.0/8'] } as const;

testTls(
  'reads the PROXY header of a load balancer before TLS, and applies source ranges to its client address',
  async (startWorkerInTest) => {
    await using backend = await echoServer();
    const service = (sourceRanges: readonly string[]): TestService =>
      webService([endpointOf(backend)], terminatingTls({ settings: { sourceRanges } }));
    using worker = await startWorkerInTest(service(['192.0.2.0/24']), TRUSTED);
    const connectWithHeader = (): TLSSocket => {
      const raw = connectPlain({ host: worker.host, port: worker.port });
      raw.write(HEADER);
      const socket = connect({ socket: raw, ...TRUSTING_CLIENT });
      socket.on('error', () => undefined);
      return socket;
    };
    const allowed = connectWithHeader();
    await once(allowed, 'secureConnect');
    await echoes(allowed);
    allowed.destroy();
    worker.serve(service(['203.0.113.0/24']));
    const refused = connectWithHeader();
    await new Promise((resolve) => refused.once('close', resolve));
    await eventually(() => assert.equal(worker.outcomes()['source-range'], 1));
  },
);

testTls(
  'ends clients whose preread began before TLS termination was configured or removed',
  async (startWorkerInTest) => {
    await using backend = await echoServer();
    const plain = webService([endpointOf(backend)]);
    const terminating = webService([endpointOf(backend)], terminatingTls());
    using worker = await startWorkerInTest(plain, TRUSTED);
    await using early = await connectClient({ host: worker.host, port: worker.port });
    await eventually(() => assert.equal(worker.row[ACTIVE], 1));
    worker.serve(terminating);
    await early.send(`${HEADER}in the clear`);
    assert.equal((await early.ended).kind, 'error');
    assert.deepEqual(worker.outcomes(), { 'no-listener': 1 });
    using other = await startWorkerInTest(terminating);
    await using handshaking = await connectClient({ host: other.host, port: other.port });
    await handshaking.send(await captureNodeClientHello(TRUSTING_CLIENT));
    await handshaking.take(5);
    other.serve(plain);
    handshaking.reset();
    await eventually(() => assert.deepEqual(other.outcomes(), { 'tls-handshake-failed': 1 }));
    assert.equal(backend.acceptedConnections, 0);
  },
);

testTls('refuses a renegotiation', async (startWorkerInTest) => {
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
