// Changes everything that may change under a load of HTTP requests: the processes are a real proxy, Redis, and endpoints that stop like pods.
import assert from 'node:assert/strict';
import { randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import { eventually, type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { insideNamespace, requireProgram, startRedis } from '@weir/tools';
import type { RunningProxy } from '../../src/index.ts';
import { FLEET_SECRET } from '../fixtures/certificates.ts';
import { FAILING_WORKER, failWorkers } from '../fixtures/failing-worker.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { tableFor } from '../fixtures/tables.ts';
import {
  expectAnswers,
  newCertificate,
  type ShopOptions,
  secureShop,
  shopLoad,
  shopServices,
  startEndpoints,
} from './load/shop.ts';

const ADDRESS = '10.240.0.1';
const namespace = insideNamespace({ addresses: [ADDRESS], sysctls: { 'net/ipv4/tcp_migrate_req': 1 } });
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
/** A long timeout, because the machine may be busy with other tests. */
const BUSY = { timeoutMs: 40_000 };
const SERVES = /this proxy now serves its node/;
/** How many answers each client gets before an event and after it. */
const ANSWERS = 20;
const WORKERS = 2;
/** The clients that open a connection per request. */
const CLIENTS_WITHOUT_KEPT_CONNECTION = 3;

const needs = namespace.skip ? namespace : requireProgram('redis');
describe('HTTP requests under load', needs, () => {
  test('no request fails when certificates, routes, endpoints and proxies change', async (t) => {
    await using old = await startEndpoints('old');
    await using next = await startEndpoints('new');
    await using host = await prepareHost();
    let shop: ShopOptions = { endpoints: old, certificate: newCertificate(), prefix: '/api' };
    const change = async (changes: Partial<ShopOptions>): Promise<void> => {
      shop = { ...shop, ...changes };
      await host.serve(shop);
      await host.applied();
      await load.answers(ANSWERS);
    };
    await host.serve(shop);
    let proxy = await host.startProxy();
    await host.listens();
    await using load = shopLoad(ADDRESS);
    expectAnswers(load, ['old'], { api: ['api'], v2: ['web'] });
    load.start();
    await load.answers(ANSWERS);

    await t.test('a new certificate', async () => {
      await change({ certificate: newCertificate() });
      assert.equal(await servedFingerprint(), new X509Certificate(shop.certificate.certificate).fingerprint256);
      assert.deepEqual(load.failed, {});
    });

    await t.test('a new path prefix', async () => {
      expectAnswers(load, ['old'], { api: ['api', 'web'], v2: ['web', 'api'] });
      await change({ prefix: '/v2' });
      expectAnswers(load, ['old'], { api: ['web'], v2: ['api'] });
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await t.test('new endpoints, of which the old ones end', async () => {
      expectAnswers(load, ['old', 'new'], { api: ['web'], v2: ['api'] });
      await change({ endpoints: next });
      expectAnswers(load, ['new'], { api: ['web'], v2: ['api'] });
      old.process.signal('SIGTERM');
      assert.deepEqual(await old.process.exited, { code: 0, signal: null });
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await t.test('a new proxy process', async () => {
      const successor = await host.startProxy();
      await successor.waitForOutput(SERVES, BUSY);
      proxy.signal('SIGTERM');
      assert.deepEqual(await proxy.exited, { code: 0, signal: null }, proxy.output());
      proxy = successor;
      await load.answers(ANSWERS);
      assert.deepEqual(load.failed, {});
    });

    await load.stop();
    t.diagnostic(JSON.stringify({ answers: load.answeredBy, unprocessed: load.unprocessed }));
    assert.deepEqual(load.failed, {});
    // RFC 9112 §9.6: requests behind a response with `close` must be sent again. And `node:http2` refuses requests by itself
    // that it has not sent yet when GOAWAY arrives.
    for (const name of Object.keys(load.unprocessed)) assert.ok(['posts', 'h2'].includes(name), name);
  });

  test('only requests on a killed worker fail', async (t) => {
    const node = randomUUID();
    await using endpoints = await startEndpoints('only');
    await using fleet = await startFleet({ nodes: [node], addresses: { [node]: ADDRESS } });
    await fleet.serve(...shopServices({ endpoints, certificate: newCertificate(), prefix: '/api' }));
    const options = { node, workers: WORKERS, workerEntry: FAILING_WORKER, fleetSecret: FLEET_SECRET };
    const proxy = await fleet.proxy(options);
    await proxy.ready;
    await using load = shopLoad(ADDRESS);
    expectAnswers(load, ['only'], { api: ['api'], v2: ['web'] });
    load.start();
    await load.answers(ANSWERS);
    assert.deepEqual(load.failed, {});

    load.mayFail = true;
    const doomed = proxy.view().threads.map(({ active }) => active);
    failWorkers(node, 'exit', 1);
    await eventually(() => assert.deepEqual(endsOf(proxy).toSorted(), [0, 1]));
    await load.answers(ANSWERS);
    const failed = load.failedConnections.size;
    t.diagnostic(JSON.stringify({ failed: load.failed, unprocessed: load.unprocessed, connections: failed, doomed }));
    assert.ok(failed <= (doomed[endsOf(proxy).indexOf(1)] ?? 0) + CLIENTS_WITHOUT_KEPT_CONNECTION);

    await eventually(() => assert.equal(proxy.view().workers, WORKERS));
    await load.answers(ANSWERS);
    assert.equal(load.failedConnections.size, failed);
    await load.stop();
  });
});

/** Returns the fingerprint of the certificate that a new client gets. */
async function servedFingerprint(): Promise<string> {
  const socket = connectTls(secureShop(ADDRESS));
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

function endsOf(proxy: RunningProxy): number[] {
  return proxy.view().threads.map(({ ends }) => ends);
}

interface Host extends AsyncDisposable {
  startProxy(): Promise<SpawnedProcess>;
  serve(shop: ShopOptions): Promise<void>;
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
  const proxies = stack.use(new AsyncDisposableStack());
  const all = stack.move();
  return {
    startProxy: async () =>
      proxies.use(await spawnProxy({ WEIR_REDIS_URL: redis.url, WEIR_FLEET: fleet, WEIR_WORKERS: String(WORKERS) })),
    async serve(shop) {
      const { kind } = await publisher.publish(tableFor({ n1: ADDRESS }, shopServices(shop)));
      assert.notEqual(kind, 'not-leader');
    },
    listens: () =>
      eventually(async () => {
        const [heartbeat] = await store.heartbeats.list();
        // Each of the two listeners is that of two Services.
        assert.equal(heartbeat?.listeners.filter(({ listening }) => listening).length, 4);
      }, BUSY),
    applied: () =>
      eventually(async () => {
        const [heartbeat] = await store.heartbeats.list();
        assert.equal(heartbeat?.applied?.id, (await store.table.meta())?.id);
      }, BUSY),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function spawnProxy(env: Record<string, string>): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    env: {
      PATH: process.env.PATH ?? '',
      WEIR_NODE: 'n1',
      WEIR_ADMIN: 'off',
      WEIR_FLEET_SECRET: FLEET_SECRET.reveal(),
      ...env,
    },
    name: 'weir-proxy',
    mayExit: true,
  });
}
