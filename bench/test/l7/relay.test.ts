// Real proxies and the real backend, without Weir: what the benchmark verifies before it measures a proxy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { makeCertificate } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { MeasuredSubject } from '../../src/comparison/measured-subject.ts';
import { startL7Backend } from '../../src/l7/backend.ts';
import { startGrpcBackend } from '../../src/l7/grpc-backend.ts';
import { L7_LISTENERS, type L7Listener } from '../../src/l7/listeners.ts';
import { requestsWithAllRoutes, uploadLoad } from '../../src/l7/loads.ts';
import { L7_RELAY_CHECKS } from '../../src/l7/relay-checks.ts';
import { startHaproxyHttp } from '../../src/l7/subjects/haproxy-http.ts';
import { startHttpProxy } from '../../src/l7/subjects/http-proxy.ts';
import { startNginxHttp } from '../../src/l7/subjects/nginx-http.ts';
import type { L7SubjectInput } from '../../src/l7/subjects/subject-input.ts';
import type { Subject } from '../../src/subjects/subject.ts';

describe('the HTTP proxies', { ...requireProgram('haproxy', 'nginx', 'nghttpd', 'wrk'), timeout: 120_000 }, () => {
  const cleanup = new AsyncDisposableStack();
  let input: L7SubjectInput;
  before(async () => {
    const backend = cleanup.use(await startL7Backend());
    const grpcBackend = cleanup.use(await startGrpcBackend());
    const backends = { backendPort: backend.port, grpcBackendPort: grpcBackend.port };
    input = { ...backends, certificate: makeCertificate({ name: 'bench.example' }) };
  });
  after(() => cleanup.disposeAsync());

  const relays: readonly (readonly [string, (input: L7SubjectInput) => Promise<Subject<L7Listener>>])[] = [
    ['HAProxy', startHaproxyHttp],
    ['nginx', startNginxHttp],
    ['http-proxy', startHttpProxy],
  ];
  for (const [name, start] of relays) {
    test(`${name} relays every document at every supported listener`, async () => {
      await using subject = await start(input);
      const measured = new MeasuredSubject(subject, L7_RELAY_CHECKS);
      const supported = L7_LISTENERS.filter((listener) => subject.unsupported?.[listener] === undefined);
      assert.equal(supported.length, name === 'http-proxy' ? 3 : 5);
      for (const listener of supported) await measured.verifyRelay(listener);
    });
  }

  test('wrk requests all routes in turn, and sends bodies', async () => {
    await using subject = await startHaproxyHttp(input);
    const measured = new MeasuredSubject(subject, L7_RELAY_CHECKS);
    await measured.verifyRelay('routes');
    const routes = await requestsWithAllRoutes.run(subject.ports.routes, 1);
    assert.deepEqual(routes.errors, []);
    const uploads = await uploadLoad.run(subject.ports.http, 1);
    assert.deepEqual(uploads.errors, []);
    assert.ok(uploads.traffic.receivedBytes.min > uploads.count * 10_240);
  });
});

test('a relay check rejects a response with another body', async () => {
  const server: Server = createServer((_request, response) => response.end('another body'));
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  try {
    const check = L7_RELAY_CHECKS.routes((server.address() as AddressInfo).port, () => {});
    await assert.rejects(check, /not the response of nginx for \/team-0\/items\/1: HTTP\/1\.1 200 OK/);
  } finally {
    server.close();
  }
});
