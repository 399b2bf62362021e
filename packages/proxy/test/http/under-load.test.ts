// Changes everything that may change under a load of HTTP requests: the processes are a real proxy, Redis, and endpoints that stop like pods.
import assert from 'node:assert/strict';
import { randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import type { Endpoint } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, type Store, TablePublisher } from '@weir/store';
import { type Certificate, eventually, makeCertificate, type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { insideNamespace, requireProgram, startRedis } from '@weir/tools';
import { AUTHORITY, certificateEntryFor, FLEET_SECRET } from '../fixtures/certificates.ts';
import { type TestService, tableFor } from '../fixtures/tables.ts';
import { HttpLoad, type LoadClient } from './load/http-load.ts';
import { Http1Client, overTcp, overTls } from './load/http1-client.ts';
import { Http2Client } from './load/http2-client.ts';

const ADDRESS = '10.240.0.1';
const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const HOST = 'shop.example';
const namespace = insideNamespace({ addresses: [ADDRESS], sysctls: { 'net/ipv4/tcp_migrate_req': 1 } });
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const ENDPOINTS = fileURLToPath(new URL('./load/endpoint-process.ts', import.meta.url));
/** A long timeout, because the machine may be busy with other tests. */
const BUSY = { timeoutMs: 40_000 };
const SERVES = /this proxy now serves its node/;
/** How many answers each client gets before an event and after it. */
const ANSWERS = 30;

const needs = namespace.skip ? namespace : requireProgram('redis');
describe('HTTP requests under load', needs, () => {
  test('no request fails when certificates, routes, endpoints and proxies change', async (t) => {
    await using host = await prepareHost();
    const before = await host.startEndpoints('old');
    let certificate = certificateFor(HOST);
    await host.serve(before, { certificate });
    let proxy = await host.startProxy();
    await host.listens();
    const load = loadOf();
    const expect = (generations: readonly string[], apiPaths: readonly string[]): void => {
      for (const [path, services] of Object.entries({ '/': ['web'], '/api/x': apiPaths, '/v2/x': apiPaths }))
        load.expected.set(
          path,
          services.flatMap((service) => generations.map((each) => `${service} ${each}`)),
        );
    };
    expect(['old'], ['web', 'api']);
    load.start();
    await load.answers(ANSWERS);

    await t.test('a new certificate', async () => {
      certificate = certificateFor(HOST);
      await host.serve(before, { certificate });
      await host.applied();
      assert.equal(await servedFingerprint(), new X509Certificate(certificate.certificate).fingerprint256);
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await t.test('a new path prefix', async () => {
      await host.serve(before, { certificate, prefix: '/v2' });
      await host.applied();
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await t.test('new endpoints, of which the old ones end', async () => {
      const after = await host.startEndpoints('new');
      expect(['old', 'new'], ['web', 'api']);
      await host.serve(after, { certificate, prefix: '/v2' });
      await host.applied();
      before.process.signal('SIGTERM');
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
      expect(['new'], ['web', 'api']);
      assert.deepEqual(await before.process.exited, { code: 0, signal: null });
    });

    await t.test('a new proxy process', async () => {
      const next = await host.startProxy();
      await next.waitForOutput(SERVES, BUSY);
      proxy.signal('SIGTERM');
      assert.deepEqual(await proxy.exited, { code: 0, signal: null }, proxy.output());
      proxy = next;
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await load.stop();
    // RFC 9112 §9.6: requests behind a response with `close` must be sent again. And `node:http2` refuses requests by itself that it
    // has not sent yet when GOAWAY arrives.
    for (const name of Object.keys(load.unprocessed)) assert.ok(['posts', 'h2'].includes(name), name);
    t.diagnostic(JSON.stringify({ completed: load.completed, unprocessed: load.unprocessed, by: load.answeredBy }));
    assert.deepEqual(load.failed, {});
  });
});

function loadOf(): HttpLoad {
  const http = overTcp({ host: ADDRESS, port: HTTP_PORT });
  const secure = { ca: AUTHORITY.certificate, servername: HOST };
  const https = overTls({ host: ADDRESS, port: HTTPS_PORT, ...secure });
  const clients: LoadClient[] = [
    ...Array.from({ length: 4 }, () => new Http1Client({ name: 'kept', connect: http, pipelined: 1, isKept: true })),
    ...Array.from({ length: 2 }, () => new Http1Client({ name: 'posts', connect: http, pipelined: 4, isKept: true })),
    ...Array.from({ length: 2 }, () => new Http1Client({ name: 'once', connect: http, pipelined: 1, isKept: false })),
    new Http1Client({ name: 'kept over TLS', connect: https, pipelined: 1, isKept: true }),
    new Http1Client({ name: 'once over TLS', connect: https, pipelined: 1, isKept: false }),
    ...Array.from(
      { length: 2 },
      () => new Http2Client({ name: 'h2', url: `https://${ADDRESS}:${HTTPS_PORT}`, tls: secure, streams: 5 }),
    ),
  ];
  return new HttpLoad({ clients, targets: ['/', '/api/x', '/v2/x'].map((path) => ({ host: HOST, path })) });
}

/** Returns the fingerprint of the certificate that a new client gets. */
async function servedFingerprint(): Promise<string> {
  const options = { host: ADDRESS, port: HTTPS_PORT, ca: AUTHORITY.certificate, servername: HOST };
  const socket = connectTls(options);
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

const certificateFor = (name: string): Certificate => makeCertificate({ name, names: [name], issuer: AUTHORITY });

interface Endpoints {
  readonly process: SpawnedProcess;
  readonly endpoints: Readonly<Record<string, Endpoint>>;
}

interface Host extends AsyncDisposable {
  readonly store: Store;
  startProxy(): Promise<SpawnedProcess>;
  startEndpoints(generation: string): Promise<Endpoints>;
  /** Publishes a table in which `api` has requests whose path begins with `prefix`, and `web` has all others. */
  serve(endpoints: Endpoints, options: { readonly certificate: Certificate; readonly prefix?: string }): Promise<void>;
  /** Resolves when the proxy listens. */
  listens(): Promise<void>;
  /** Resolves when the workers of the proxy have the newest table. */
  applied(): Promise<void>;
}

async function prepareHost(): Promise<Host> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const fleet = `test-${randomUUID()}`;
  const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
  stack.defer(() => store.close());
  await store.usage.seed({ months: [], bases: [] });
  await store.suspensions.markComplete();
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  const processes = stack.use(new AsyncDisposableStack());
  const all = stack.move();
  const start = async (args: readonly string[], env: Record<string, string>): Promise<SpawnedProcess> =>
    processes.use(
      await spawnProcess({
        command: process.execPath,
        args: ['--conditions=source', ...args],
        env: { PATH: process.env.PATH ?? '', ...env },
        mayExit: true,
      }),
    );
  return {
    store,
    startProxy: () =>
      start([MAIN], {
        WEIR_NODE: 'n1',
        WEIR_WORKERS: '2',
        WEIR_ADMIN: 'off',
        WEIR_REDIS_URL: redis.url,
        WEIR_FLEET: fleet,
        WEIR_FLEET_SECRET: FLEET_SECRET.reveal(),
      }),
    async startEndpoints(generation) {
      const process = await start([ENDPOINTS, generation, 'web', 'api'], {});
      await process.waitForOutput(/\}\n/, BUSY);
      const ports: Record<string, number> = JSON.parse(process.stdout());
      const endpoints = Object.entries(ports).map(([service, port]) => [service, { address: '127.0.0.1', port }]);
      return { process, endpoints: Object.fromEntries(endpoints) };
    },
    async serve({ endpoints }, { certificate, prefix = '/api' }) {
      const services = [HTTP_PORT, HTTPS_PORT].flatMap((port) => [
        serviceFor('web', port, { endpoints, certificate, prefix: undefined }),
        serviceFor('api', port, { endpoints, certificate, prefix }),
      ]);
      assert.notEqual((await publisher.publish(tableFor({ n1: ADDRESS }, services))).kind, 'not-leader');
    },
    listens: () =>
      eventually(async () => {
        const [heartbeat] = await store.heartbeats.list();
        const { length = 0 } = heartbeat?.listeners.filter(({ listening }) => listening) ?? [];
        assert.equal(length, 4);
      }, BUSY),
    applied: () =>
      eventually(async () => {
        const [heartbeat] = await store.heartbeats.list();
        assert.equal(heartbeat?.applied?.id, (await store.table.meta())?.id);
      }, BUSY),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function serviceFor(
  name: string,
  port: number,
  {
    endpoints,
    certificate,
    prefix,
  }: { certificate: Certificate; prefix: string | undefined } & Pick<Endpoints, 'endpoints'>,
): TestService {
  const tls = { secret: 'web', ports: [{ port, alpn: ['h2', 'http/1.1'] }], clientCaSecret: null };
  return {
    name: `${name}-${port}`,
    port,
    shared: true,
    endpoints: [endpoints[name] ?? assert.fail(`no endpoint of ${name}`)],
    ...(port === HTTPS_PORT ? { certificate: certificateEntryFor(certificate) } : {}),
    settings: {
      httpPorts: [port],
      hosts: [HOST],
      ...(prefix === undefined ? {} : { pathPrefix: prefix }),
      ...(port === HTTPS_PORT ? { tls } : {}),
    },
  };
}
