// Tests which endpoints a proxy avoids because of gRPC health checks, with real sockets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HealthCheckSettings, UnhealthyEndpoint } from '@weir/model';
import { discardServer, eventually, makeCertificate } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { terminatingTls } from '../fixtures/certificates.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { type GrpcHealthEndpoint, grpcHealthEndpoint } from '../fixtures/grpc-health-endpoint.ts';
import { httpEndpoint } from '../fixtures/http-endpoint.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

const PODS = makeCertificate({ name: 'Pods', isAuthority: true });
const POD = makeCertificate({ name: 'pod', names: ['shop.internal'], issuer: PODS });

/** A check with a long timeout, because the machine may be busy. */
const GRPC: HealthCheckSettings = {
  kind: 'tcp',
  grpcService: 'shop.v1.Orders',
  intervalMs: 60,
  timeoutMs: 2_000,
  healthyThreshold: 1,
  unhealthyThreshold: 2,
};

function unhealthyOf(
  proxy: RunningProxy,
  { endpoint }: Pick<GrpcHealthEndpoint, 'endpoint'>,
): UnhealthyEndpoint | undefined {
  return proxy.view().unhealthy?.endpoints.find((each) => each.endpoint.port === endpoint.port);
}

test('avoids an endpoint that does not serve, and uses the endpoint again when it serves', async () => {
  await using fleet = await startFleet();
  await using a = await grpcHealthEndpoint();
  await using b = await grpcHealthEndpoint();
  const proxy = await startServing(fleet, webService([a.endpoint, b.endpoint], { settings: { healthCheck: GRPC } }));
  b.status = 'NOT_SERVING';
  await eventually(() => assert.equal(unhealthyOf(proxy, b)?.why, 'its grpc check fails: NOT_SERVING'));
  assert.equal(unhealthyOf(proxy, b)?.used, false);
  assert.equal(unhealthyOf(proxy, a), undefined);
  b.status = 'SERVING';
  await eventually(() => assert.equal(proxy.view().unhealthy, undefined));
});

test('avoids endpoints that hang or speak only HTTP/1.1', async () => {
  await using fleet = await startFleet();
  await using good = await grpcHealthEndpoint();
  await using silent = await discardServer();
  await using http1 = await httpEndpoint('a');
  const at = endpointOf(silent);
  const healthCheck = { ...GRPC, timeoutMs: 300 };
  const endpoints = [good.endpoint, at, http1.endpoint];
  const proxy = await startServing(fleet, webService(endpoints, { settings: { healthCheck } }));
  await eventually(() => {
    const { why } = unhealthyOf(proxy, { endpoint: at }) ?? {};
    assert.equal(why, 'its grpc check fails: no answer within 300 ms');
    const other = unhealthyOf(proxy, http1)?.why;
    assert.equal(other, 'its grpc check fails: an answer of HTTP/1 instead of HTTP/2');
    assert.equal(unhealthyOf(proxy, good), undefined);
  });
});

test('uses TLS with the server name of the endpoints at a port whose endpoints expect TLS', async () => {
  await using fleet = await startFleet();
  await using a = await grpcHealthEndpoint(POD);
  await using b = await grpcHealthEndpoint(POD);
  b.status = 'NOT_SERVING';
  const { certificate, settings } = terminatingTls({ settings: { httpPorts: [PORT], healthCheck: GRPC } });
  assert.ok(certificate && settings?.tls);
  const backend = { caSecret: 'pods', serverName: 'shop.internal', ports: [PORT] };
  const proxy = await startServing(
    fleet,
    webService([a.endpoint, b.endpoint], {
      certificate: { ...certificate, backendAuthorities: PODS.certificate },
      settings: { ...settings, tls: { ...settings.tls, backend } },
    }),
  );
  await eventually(() => assert.equal(unhealthyOf(proxy, b)?.why, 'its grpc check fails: NOT_SERVING'));
  assert.equal(unhealthyOf(proxy, a), undefined);
  assert.equal(a.requests[0]?.authority, `shop.internal:${a.endpoint.port}`);
});
