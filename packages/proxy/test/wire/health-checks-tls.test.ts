// Tests health checks of endpoints that terminate TLS, with real sockets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HealthCheckSettings, ServiceSettings, UnhealthyEndpoint } from '@weir/model';
import { discardServer, eventually, makeCertificate } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { writeLocalProxyHeader } from '../../src/protocol/write-proxy-header.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { type HttpEndpoint, httpEndpoint } from '../fixtures/http-endpoint.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

/** A self-signed certificate for a name that no test requests. No client would trust this certificate. */
const UNTRUSTED = makeCertificate({ name: 'nobody.example', names: ['nobody.example'] });

/** A health check with a long timeout, because the machine may be busy. */
const HTTPS: HealthCheckSettings = {
  kind: 'http',
  path: '/readyz',
  overTls: true,
  intervalMs: 60,
  timeoutMs: 2_000,
  healthyThreshold: 1,
  unhealthyThreshold: 2,
};

const checked = (endpoints: readonly { readonly port: number }[], settings: Partial<ServiceSettings> = {}) =>
  webService(
    endpoints.map(({ port }) => ({ address: '127.0.0.1', port })),
    { settings: { healthCheck: HTTPS, ...settings } },
  );

function unhealthyOf(proxy: RunningProxy, { endpoint }: Pick<HttpEndpoint, 'endpoint'>): UnhealthyEndpoint | undefined {
  return proxy.view().unhealthy?.endpoints.find((each) => each.endpoint.port === endpoint.port);
}

test('passes with an untrusted certificate, fails on status 500, and sends no server name to an address', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a', UNTRUSTED);
  await using b = await httpEndpoint('b', UNTRUSTED);
  const proxy = await startServing(fleet, checked([a.endpoint, b.endpoint]));
  b.status = 500;
  await eventually(() => assert.equal(unhealthyOf(proxy, b)?.why, 'its https check fails: status 500'));
  assert.equal(unhealthyOf(proxy, b)?.used, false);
  assert.equal(unhealthyOf(proxy, a), undefined);
  const host = `127.0.0.1:${a.endpoint.port}`;
  assert.deepEqual(a.requests.at(-1), { path: '/readyz', host, serverName: false });
  b.status = 200;
  await eventually(() => assert.equal(proxy.view().unhealthy, undefined));
  await proxy.close({ drainMs: 0 });
  await eventually(() => assert.equal(a.open + b.open, 0));
});

test('sends the first host without a wildcard as server name', async () => {
  await using fleet = await startFleet();
  await using a = await httpEndpoint('a', UNTRUSTED);
  const hosts = ['*.shop.example', 'shop.example', 'other.example'];
  await startServing(fleet, checked([a.endpoint], { hosts, tlsPassthrough: true }));
  await eventually(() =>
    assert.deepEqual(a.requests[0], {
      path: '/readyz',
      host: `shop.example:${a.endpoint.port}`,
      serverName: 'shop.example',
    }),
  );
});

test('fails for an endpoint without TLS or without a handshake, and leaves no connection open', async () => {
  await using fleet = await startFleet();
  await using plain = await httpEndpoint('plain');
  await using silent = await discardServer();
  await using good = await httpEndpoint('good', UNTRUSTED);
  const healthCheck = { ...HTTPS, timeoutMs: 200 };
  const at = endpointOf(silent);
  const proxy = await startServing(fleet, checked([plain.endpoint, at, good.endpoint], { healthCheck }));
  await eventually(() => {
    assert.match(unhealthyOf(proxy, plain)?.why ?? '', /^its https check fails: E/);
    assert.equal(unhealthyOf(proxy, { endpoint: at })?.why, 'its https check fails: no answer within 200 ms');
    assert.equal(unhealthyOf(proxy, good), undefined);
  });
  await proxy.close({ drainMs: 0 });
  await eventually(() => assert.deepEqual([silent.openConnections, plain.open, good.open], [0, 0, 0]));
});

test('sends the PROXY header before the ClientHello', async () => {
  await using fleet = await startFleet();
  await using endpoint = await scriptedEndpoint();
  const healthCheck = { ...HTTPS, intervalMs: 1_000, timeoutMs: 1_000 };
  await startServing(fleet, checked([endpointOf(endpoint)], { healthCheck, proxyProtocol: 'v2' }));
  const side = await endpoint.next();
  const header = Buffer.from(writeLocalProxyHeader('v2'));
  const begun = await side.take(header.length + 3);
  assert.deepEqual(begun.subarray(0, header.length), header);
  // A handshake record of TLS 1.0 or later (RFC 8446 §5.1).
  assert.deepEqual([...begun.subarray(header.length)], [22, 3, 1]);
});
