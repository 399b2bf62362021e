// Tests endpoints that demand a certificate from the proxy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Endpoint } from '@weir/model';
import { Sealer, Secret } from '@weir/runtime';
import { type Certificate, connectClient, makeCertificate, type TestClient } from '@weir/testkit';
import { certificateEntryFor, SEALER, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { ask } from '../../fixtures/http-worker.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const PODS = makeCertificate({ name: 'Pods', isAuthority: true });
const POD = makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: PODS });
const PROXIES = makeCertificate({ name: 'Proxies', isAuthority: true });
const FIRST = makeCertificate({ name: 'first', issuer: PROXIES });
const SECOND = makeCertificate({ name: 'second', issuer: PROXIES });

interface DemandingEndpoint extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** The names in the certificates of the proxy, one per connection. */
  readonly names: readonly unknown[];
  readonly requests: number;
}

/** An HTTPS endpoint that accepts only connections with a certificate of the proxies. */
async function demandingEndpoint(): Promise<DemandingEndpoint> {
  const state = { names: [] as unknown[], requests: 0 };
  const server = createServer(
    { cert: POD.chain, key: POD.key, ca: PROXIES.certificate, requestCert: true, rejectUnauthorized: true },
    (_request, response) => {
      state.requests += 1;
      response.end('from the pod');
    },
  );
  server.on('secureConnection', (socket: TLSSocket) => state.names.push(socket.getPeerCertificate().subject?.CN));
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, {
    endpoint: { address: '127.0.0.1', port: (server.address() as AddressInfo).port },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

/** `certificate` is that for the endpoints; null if the Service names a Secret whose certificate is missing. */
function encryptedAgain(endpoint: Endpoint, certificate?: Certificate | null, sealer = SEALER): TestService {
  const tls = terminatingTls({ alpn: ['http/1.1'], settings: { httpPorts: [PORT] } });
  assert.ok(tls.certificate && tls.settings?.tls);
  const named = certificate === undefined ? {} : { certificateSecret: 'proxies' };
  const backend = { caSecret: 'pods', serverName: 'shop.internal', ports: [PORT], ...named };
  return webService([endpoint], {
    certificate: { ...tls.certificate, backendAuthorities: PODS.certificate },
    settings: { ...tls.settings, tls: { ...tls.settings.tls, backend } },
    ...(certificate && {
      otherCertificates: [{ ...certificateEntryFor(certificate, { sealer }), forEndpoints: true }],
    }),
  });
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: web.example\r\n\r\n';
const connectTo = ({ host, port }: WorkerInTest): Promise<TestClient> =>
  connectClient({ host, port, tls: TRUSTING_CLIENT });

async function statusAt(worker: WorkerInTest): Promise<number> {
  await using client = await connectTo(worker);
  return (await ask(client, REQUEST)).status;
}

test('shows the certificate of the Service to endpoints that demand one, and never to clients', async () => {
  await using pod = await demandingEndpoint();
  using worker = await startWorkerInTest(encryptedAgain(pod.endpoint, FIRST));
  await using client = await connectTo(worker);
  const { status, body } = await ask(client, REQUEST);
  assert.deepEqual([status, body], [200, 'from the pod']);
  assert.deepEqual(pod.names, ['first']);
  assert.deepEqual(worker.reported, []);
});

test('uses neither a connection nor a session of a former certificate', async () => {
  await using pod = await demandingEndpoint();
  using worker = await startWorkerInTest(encryptedAgain(pod.endpoint, FIRST));
  await using client = await connectTo(worker);
  assert.equal((await ask(client, REQUEST)).status, 200);
  worker.serve(encryptedAgain(pod.endpoint, SECOND));
  assert.equal((await ask(client, REQUEST)).status, 200);
  assert.equal(await statusAt(worker), 200);
  assert.deepEqual(pod.names, ['first', 'second']);
});

test('answers 502 without a certificate, and with one of another CA', async () => {
  await using pod = await demandingEndpoint();
  const other = makeCertificate({ name: 'first', issuer: makeCertificate({ name: 'Proxies', isAuthority: true }) });
  for (const certificate of [undefined, other]) {
    using worker = await startWorkerInTest(encryptedAgain(pod.endpoint, certificate));
    assert.equal(await statusAt(worker), 502);
  }
  assert.equal(pod.requests, 0);
});

test('connects to no endpoint while the certificate is missing, or its key cannot be opened', async () => {
  await using pod = await demandingEndpoint();
  using missing = await startWorkerInTest(encryptedAgain(pod.endpoint, null));
  assert.equal(await statusAt(missing), 502);
  const otherFleet = new Sealer(new Secret('the secret of another fleet, also long enough'));
  using unopened = await startWorkerInTest(encryptedAgain(pod.endpoint, FIRST, otherFleet));
  assert.equal(await statusAt(unopened), 502);
  assert.deepEqual(pod.names, []);
});
