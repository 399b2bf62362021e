// Tests TLS termination with several certificates of one Service.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type Certificate, echoServer, makeCertificate } from '@weir/testkit';
import { AUTHORITY, certificateEntryFor, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { testTls } from '../fixtures/tls-tests.ts';
import type { WorkerInTest } from '../fixtures/worker-in-test.ts';

const SHOP = { name: 'shop', names: ['shop.example'], issuer: AUTHORITY };
const ECDSA = makeCertificate(SHOP);
const RSA = makeCertificate({ ...SHOP, keyType: 'rsa' });
const GAME = makeCertificate({ name: 'game', names: ['game.example'], issuer: AUTHORITY });
const RSA_ONLY = { sigalgs: 'rsa_pss_rsae_sha256' };

interface TlsClient {
  readonly socket: TLSSocket;
  readonly certificate: string;
  readonly session: Buffer | undefined;
}

/** Connects a client that verifies the certificate, and waits for its echo. */
async function connectTls(worker: WorkerInTest, options: ConnectionOptions): Promise<TlsClient> {
  const socket = connect({ host: worker.host, port: worker.port, ca: AUTHORITY.certificate, ...options });
  let session: Buffer | undefined;
  socket.on('session', (ticket: Buffer) => {
    session = ticket;
  });
  await once(socket, 'secureConnect');
  await assertEchoes(socket);
  return { socket, certificate: String(socket.getPeerX509Certificate() ?? ''), session };
}

async function assertEchoes(socket: TLSSocket): Promise<void> {
  socket.write('hello');
  const [echoed] = (await once(socket, 'data')) as [Buffer];
  assert.equal(echoed.toString(), 'hello');
}

const serving = (
  endpoint: { host: string; port: number },
  authority: Certificate | undefined,
  ...others: Certificate[]
): TestService =>
  webService([endpointOf(endpoint)], {
    ...terminatingTls({ certificate: ECDSA, ...(authority && { authority }) }),
    otherCertificates: others.map((each) => certificateEntryFor(each)),
  });

testTls('gives each client the certificate for its host and its signature algorithms', async (startWorkerInTest) => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(serving(backend, undefined, RSA, GAME));
  const cases: readonly [ConnectionOptions, Certificate][] = [
    [{ servername: 'shop.example' }, ECDSA],
    [{ servername: 'shop.example', ...RSA_ONLY }, RSA],
    [{ servername: 'shop.example', maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }, RSA],
    [{ servername: 'game.example' }, GAME],
  ];
  for (const [options, expected] of cases) {
    const { socket, certificate } = await connectTls(worker, options);
    socket.destroy();
    assert.equal(certificate, expected.certificate);
  }
  assert.deepEqual(worker.reported, []);
});

testTls(
  'uses a renewed certificate for the next client, and keeps open connections and the other certificates',
  async (startWorkerInTest) => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(serving(backend, undefined, RSA, GAME));
    const open = await connectTls(worker, { servername: 'game.example' });
    const ofShop = await connectTls(worker, { servername: 'shop.example', maxVersion: 'TLSv1.2' });
    const renewed = makeCertificate({ name: 'game', names: ['game.example'], issuer: AUTHORITY });
    worker.serve(serving(backend, undefined, RSA, renewed));
    const next = await connectTls(worker, { servername: 'game.example' });
    assert.equal(next.certificate, renewed.certificate);
    await assertEchoes(open.socket);
    const resumed = await connectTls(worker, {
      servername: 'shop.example',
      maxVersion: 'TLSv1.2',
      ...(ofShop.session && { session: ofShop.session }),
    });
    assert.equal(resumed.socket.isSessionReused(), true);
    for (const { socket } of [open, ofShop, next, resumed]) socket.destroy();
  },
);

testTls('does not resume a session of another host', async (startWorkerInTest) => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(serving(backend, undefined, GAME));
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const first = await connectTls(worker, { servername: 'shop.example', maxVersion });
    assert.ok(first.session);
    const other = await connectTls(worker, { servername: 'game.example', maxVersion, session: first.session });
    assert.equal(other.socket.isSessionReused(), false);
    assert.equal(other.certificate, GAME.certificate);
    for (const { socket } of [first, other]) socket.destroy();
  }
});

testTls('asks for a client certificate with every certificate of the Service', async (startWorkerInTest) => {
  await using backend = await echoServer();
  const clients = makeCertificate({ name: 'Clients', isAuthority: true });
  const buyer = makeCertificate({ name: 'buyer', usage: 'client', issuer: clients });
  using worker = await startWorkerInTest(serving(backend, clients, GAME));
  for (const servername of ['shop.example', 'game.example']) {
    const { socket } = await connectTls(worker, { servername, cert: buyer.chain, key: buyer.key });
    socket.destroy();
    await assert.rejects(connectTls(worker, { servername }), { code: /CERTIFICATE_REQUIRED|ECONNRESET/ });
  }
});
