// Tests which clients get an OCSP response with the certificate, and until when.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ConnectionOptions, connect } from 'node:tls';
import { type Certificate, echoServer, makeCertificate, makeOcspResponse } from '@weir/testkit';
import { AUTHORITY, certificateEntryFor, SERVER, TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { testTls } from '../fixtures/tls-tests.ts';
import type { WorkerInTest } from '../fixtures/worker-in-test.ts';

const THIS_UPDATE = Date.now() - 60_000;
const NEXT_UPDATE = Date.now() + 60_000;

type CertificateEntry = NonNullable<TestService['certificate']>;

const stapled = (certificate: Certificate): CertificateEntry => ({
  ...certificateEntryFor(certificate),
  ocsp: {
    response: makeOcspResponse(certificate).toString('base64'),
    thisUpdate: THIS_UPDATE,
    nextUpdate: NEXT_UPDATE,
  },
});

/** Returns the OCSP response that a client gets in base64; null if the client gets none. */
async function stapleFor(worker: WorkerInTest, options: ConnectionOptions = {}): Promise<string | null> {
  const { host, port } = worker;
  const socket = connect({ host, port, ...TRUSTING_CLIENT, requestOCSP: true, ...options });
  let response: Buffer | null = null;
  socket.on('OCSPResponse', (bytes: Buffer | null) => {
    response = bytes;
  });
  await once(socket, 'secureConnect');
  socket.destroy();
  return (response as Buffer | null)?.toString('base64') ?? null;
}

testTls('staples the OCSP response to the certificate for clients that ask for it', async (startWorkerInTest) => {
  await using backend = await echoServer();
  const certificate = stapled(SERVER);
  using worker = await startWorkerInTest(webService([endpointOf(backend)], { ...terminatingTls(), certificate }));
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const only = { minVersion: version, maxVersion: version };
    assert.equal(await stapleFor(worker, only), certificate.ocsp?.response);
    assert.equal(await stapleFor(worker, { ...only, requestOCSP: false }), null);
  }
  assert.deepEqual(worker.reported, []);
});

testTls('staples the response only from thisUpdate until nextUpdate', async (startWorkerInTest) => {
  await using backend = await echoServer();
  let now = THIS_UPDATE - 1;
  const service = webService([endpointOf(backend)], { ...terminatingTls(), certificate: stapled(SERVER) });
  using worker = await startWorkerInTest(service, { wallClock: () => now });
  assert.equal(await stapleFor(worker), null);
  now = THIS_UPDATE;
  assert.notEqual(await stapleFor(worker), null);
  now = NEXT_UPDATE - 1;
  assert.notEqual(await stapleFor(worker), null);
  now = NEXT_UPDATE;
  assert.equal(await stapleFor(worker), null);
});

testTls('staples the response of the certificate that the client gets', async (startWorkerInTest) => {
  await using backend = await echoServer();
  const rsa = makeCertificate({ name: 'web', names: ['web.example'], issuer: AUTHORITY, keyType: 'rsa' });
  const otherCertificates = [stapled(rsa)];
  using worker = await startWorkerInTest(webService([endpointOf(backend)], { ...terminatingTls(), otherCertificates }));
  assert.equal(await stapleFor(worker), null);
  assert.equal(await stapleFor(worker, { sigalgs: 'rsa_pss_rsae_sha256' }), otherCertificates[0]?.ocsp?.response);
});
