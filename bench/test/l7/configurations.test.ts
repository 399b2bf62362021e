import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROUTES, ROUTES_BY_HOST } from '../../src/l7/routes.ts';
import { envoyHttpConfiguration } from '../../src/l7/subjects/envoy-http.ts';
import { haproxyHttpConfiguration, haproxyRoutes } from '../../src/l7/subjects/haproxy-http.ts';
import { nginxHttpConfiguration } from '../../src/l7/subjects/nginx-http.ts';
import { weirHttpManifests } from '../../src/l7/subjects/weir-http.ts';

const ports = { http: 1001, routes: 1002, https: 1003, http2: 1004, grpc: 1005 };
const backends = { backendPort: 2001, grpcBackendPort: 2002 };
const directory = '/somewhere';
const certificate = { chain: 'a chain', key: 'a key' };

/** The fields that each proxy writes into a request. Envoy writes the other ones without being asked. */
const FORWARDED_FIELDS = ['X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'X-Request-Id', 'Via'];

const countOf = (text: string, part: string): number => text.split(part).length - 1;

describe('the routes', () => {
  test('are 1,000 distinct pairs of a host and a path prefix, with targets of one length', () => {
    const targets = ROUTES.map(({ host, pathPrefix }) => host + pathPrefix);
    assert.equal(new Set(targets).size, 1_000);
    assert.equal(new Set(targets.map(({ length }) => length)).size, 1);
    assert.equal(ROUTES_BY_HOST.size, 100);
  });
});

describe('HTTP configurations', () => {
  test('HAProxy listens on all five ports, and writes the forwarded fields at each', () => {
    const text = haproxyHttpConfiguration({ directory, ports, ...backends });
    for (const port of Object.values(ports)) assert.equal(countOf(text, `bind 127.0.0.1:${port}`), 1, String(port));
    for (const field of FORWARDED_FIELDS) assert.ok(countOf(text, `${field} `) >= 5, field);
    assert.equal(countOf(text, 'X-Forwarded-Proto https'), 1);
    assert.equal(countOf(text, `127.0.0.1:${backends.backendPort}`), 1_001);
    assert.equal(countOf(haproxyRoutes(ROUTES), '\n'), 1_000);
    assert.match(text, /127\.0\.0\.1:2002 proto h2/);
    assert.match(haproxyRoutes(ROUTES), /^shop-000\.example\/team-0\/ routes-0\n/);
  });

  test('nginx has one server per host and one location per route, and keeps connections to the backend', () => {
    const text = nginxHttpConfiguration({ directory, ports, ...backends });
    assert.equal(countOf(text, `listen 127.0.0.1:${ports.routes};`), 100);
    assert.equal(countOf(text, 'location /team-'), 1_000);
    assert.equal(countOf(text, '  upstream routes-'), 1_000);
    assert.match(text, /listen 127\.0\.0\.1:1003 ssl /);
    assert.match(text, /listen 127\.0\.0\.1:1004 http2 /);
    assert.match(text, /server 127\.0\.0\.1:2002; keepalive 256;/);
    assert.match(text, /grpc_pass grpc:\/\/calls;/);
    for (const field of FORWARDED_FIELDS) assert.equal(countOf(text, `proxy_set_header ${field} `), 1, field);
    for (const field of FORWARDED_FIELDS) assert.equal(countOf(text, `grpc_set_header ${field} `), 1, field);
  });

  test('Envoy has a virtual host per host, TLS at one listener, and no circuit breakers', () => {
    const text = JSON.stringify(envoyHttpConfiguration(ports, { ...backends, certificate }));
    assert.equal(countOf(text, '"domains":["shop-'), 100);
    assert.equal(countOf(text, '"prefix":"/team-'), 1_000);
    assert.equal(countOf(text, '"prefix":"/"'), 4);
    assert.equal(countOf(text, '"explicit_http_config":{"http2_protocol_options":{}}'), 1);
    assert.equal(countOf(text, '"inline_string":"a chain"'), 1);
    assert.equal(countOf(text, `"port_value":${backends.backendPort}`), 1_001);
    assert.ok(text.includes('"max_requests":1000000000'));
  });

  test('Weir has a Service for each listener, and for each route only if the routes are measured', () => {
    const without = weirHttpManifests(ports, { ...backends, certificate, hasRoutes: false });
    assert.equal(countOf(without, 'kind: Service\n'), 4);
    assert.equal(countOf(without, 'appProtocol: grpc}'), 1);
    assert.equal(countOf(without, 'appProtocol: http}'), 3);
    assert.match(without, /weir\.dev\/tls-secret: "bench-tls", weir\.dev\/tls-ports: "1003"/);
    assert.match(without, /kind: TenantPolicy.*allowedHosts: \[\]/s);
    const withRoutes = weirHttpManifests(ports, { ...backends, certificate, hasRoutes: true });
    assert.equal(countOf(withRoutes, 'kind: Service\n'), 1_004);
    assert.match(withRoutes, /allowedHosts: \["\*\.example"\]/);
    assert.match(withRoutes, /weir\.dev\/hosts: "shop-099\.example", weir\.dev\/path-prefix: "\/team-9"/);
  });
});
