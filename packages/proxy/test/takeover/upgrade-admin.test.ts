// Tests an upgrade like that of a DaemonSet with maxSurge: both proxies use the host's network and the same admin port.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@weir/runtime';
import { openRedisStore, TablePublisher } from '@weir/store';
import {
  connectClient,
  echoServer,
  eventually,
  freePort,
  makeCertificate,
  type SpawnedProcess,
  spawnProcess,
  temporaryDirectory,
} from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import type { ProxySelfView } from '../../src/index.ts';
import { requestAdmin, requestSocket, runProbe } from '../fixtures/admin-requests.ts';
import { loopbackAddress, PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { steadyLoad } from '../fixtures/steady-load.ts';
import { tableFor } from '../fixtures/tables.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const TOKEN = 'a-token-of-24-characters';
const BUSY = { timeoutMs: 40_000 };
/**
 * The maximum time without an answer from the admin port. It is far more than the 250 ms between two attempts to open
 * the port, and far less than the timeout of a scraper.
 */
const MAX_GAP_MS = 2_000;
const EXITS = { ok: { code: 0, signal: null }, failed: { code: 1, signal: null }, usage: { code: 2, signal: null } };

describe('two proxies of one node with one admin port', requireProgram('redis'), () => {
  test('the successor gets the admin port with the node and is ready only then; no client is refused', async (t) => {
    await using host = await prepareHost();
    const old = await host.start();
    await old.ready();
    const [oldLife, stop] = [await host.life(), new AbortController()];
    const load = steadyLoad({ host: host.address, port: PORT }, { perSecond: 150, signal: stop.signal });
    const watch = host.watchAdmin(stop.signal);
    const next = await host.start();
    const refusals = await next.refusalsUntilReady();
    await old.process.waitForOutput(/has handed over its node/, BUSY);
    assert.deepEqual(await runProbe(next.socket), { exit: EXITS.ok, line: 'ok\n' });
    const { exit, line } = await runProbe(old.socket);
    assert.deepEqual(exit, EXITS.failed);
    assert.match(line, /^another proxy has taken over node n1 of fleet .* on this host\n$/);
    assert.deepEqual((await runProbe(old.socket, 'live')).exit, EXITS.ok);
    const nextLife = await eventually(() => host.life());
    assert.ok(nextLife > oldLife);
    old.process.signal('SIGTERM');
    assert.deepEqual(await old.process.exited, EXITS.ok);
    assert.equal(await host.life(), nextLife);
    stop.abort();
    const { completed, failed } = await load;
    const { lives, longestGapMs } = await watch;
    t.diagnostic(`${completed} connections, ${JSON.stringify(failed)}; admin was unreachable for ${longestGapMs} ms`);
    t.diagnostic(`not ready before: ${[...new Set(refusals)].join(' | ')}`);
    assert.ok(completed > 0);
    // The kernel may reset connections in the accept queue of the predecessor: see upgrade.test.ts.
    assert.deepEqual(
      Object.keys(failed).filter((code) => code !== 'ECONNRESET'),
      [],
    );
    assert.deepEqual(lives, [oldLife, nextLife]);
    assert.ok(longestGapMs < MAX_GAP_MS, `admin was unreachable for ${longestGapMs} ms`);
  });

  test('a proxy that fails to start, or has no Redis, takes neither the node nor the admin port', async () => {
    await using host = await prepareHost();
    const old = await host.start();
    await old.ready();
    const life = await host.life();
    const wrong = [{ WEIR_ADMIN_TLS: '/nowhere' }, { WEIR_WORKERS: 'many' }, { WEIR_REDIS_URL: host.refusedUrl }];
    for (const env of wrong) {
      const broken = await host.start(env);
      assert.deepEqual(await broken.process.exited, EXITS.usage, broken.process.output());
      assert.match(broken.process.output(), /weir-proxy: .*\n$/);
    }
    const lost = await host.start({ WEIR_REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
    await lost.process.waitForOutput(/waiting for the admin port/, BUSY);
    const { exit, line } = await runProbe(lost.socket);
    assert.deepEqual(exit, EXITS.failed);
    assert.match(line, /^no routing table yet\n$/);
    assert.equal(await host.life(), life);
    await host.echo();
    lost.process.signal('SIGTERM');
    assert.deepEqual(await lost.process.exited, EXITS.ok);
    assert.equal(await host.life(), life);
  });

  test('the predecessor takes node and admin port back when the successor is killed', async () => {
    await using host = await prepareHost();
    const old = await host.start();
    await old.ready();
    const life = await host.life();
    const next = await host.start();
    await next.ready();
    await eventually(async () => assert.notEqual(await host.life(), life));
    next.process.signal('SIGKILL');
    await next.process.exited;
    await eventually(async () => assert.equal(await host.life(), life));
    await old.ready();
    await host.echo();
    const after = await runProbe(next.socket);
    assert.deepEqual(after.exit, EXITS.failed);
    assert.match(after.line, /^no proxy answers on .*probe.sock: connect ECONNREFUSED/);
  });
});

test('the probe reports wrong usage', async () => {
  const unset = await runProbe(undefined);
  assert.deepEqual(unset.exit, EXITS.usage);
  assert.match(unset.line, /^weir-probe: WEIR_PROBE_SOCKET is not set/);
  const unknown = await runProbe('/x', 'toString');
  assert.deepEqual(unknown.exit, EXITS.usage);
  assert.match(unknown.line, /ready \(the default\) or live/);
});

test('a proxy answers probes before it reaches Redis, and validates the probe settings first', async () => {
  await using directory = temporaryDirectory('probe');
  const socket = join(directory.path, 'probe.sock');
  const env = { WEIR_REDIS_URL: `redis://127.0.0.1:${await freePort()}`, WEIR_ADMIN: 'off' };
  await using _proxy = await spawnProxy({ ...env, WEIR_FLEET: `test-${randomUUID()}`, WEIR_PROBE_SOCKET: socket });
  await eventually(async () => assert.equal((await requestSocket(socket, '/healthz')).status, 200), BUSY);
  assert.equal((await requestSocket(socket)).status, 503);
  await using wrong = await spawnProxy({ ...env, WEIR_PROBE_SOCKET: '/nowhere/probe.sock', WEIR_DRAIN: '2h' });
  assert.deepEqual(await wrong.exited, EXITS.usage);
  assert.match(wrong.output(), /WEIR_DRAIN is "2h"; use a duration such as 500ms, 5s or 10m, 0s to 1h/);
  await using nowhere = await spawnProxy({ ...env, WEIR_PROBE_SOCKET: '/nowhere/probe.sock' });
  assert.deepEqual(await nowhere.exited, EXITS.usage);
  assert.match(nowhere.output(), /^weir-proxy: failed to open the probe socket: .*\/nowhere\/probe.sock.*\n$/);
});

interface Started {
  readonly process: SpawnedProcess;
  readonly socket: string;
  ready(): Promise<void>;
  /** Resolves when the proxy is ready, and returns the reasons that its probe gave until then. */
  refusalsUntilReady(): Promise<string[]>;
}

interface Host extends AsyncDisposable {
  readonly address: string;
  readonly refusedUrl: string;
  start(env?: Record<string, string>): Promise<Started>;
  /** Returns the incarnation of the proxy that answers on the admin port. */
  life(): Promise<number>;
  /**
   * Asks the admin port until `signal` aborts. Returns the incarnations that answered, in order, and the longest time
   * without an answer.
   */
  watchAdmin(signal: AbortSignal): Promise<{ readonly lives: readonly number[]; readonly longestGapMs: number }>;
  echo(): Promise<void>;
}

/** Starts Redis and an endpoint, and publishes a table. The test starts the proxies. */
async function prepareHost(): Promise<Host> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis({ password: 'right' }));
  const backend = stack.use(await echoServer());
  const directory = stack.use(temporaryDirectory('upgrade'));
  const certificate = makeCertificate({ name: 'admin', names: ['127.0.0.1'] });
  writeFileSync(join(directory.path, 'tls.crt'), certificate.certificate);
  writeFileSync(join(directory.path, 'tls.key'), certificate.key);
  const [fleet, address, port] = [`test-${randomUUID()}`, loopbackAddress(), await freePort()];
  const store = await openRedisStore({ url: redis.url, fleet, log: silentLogger() });
  stack.defer(() => store.close());
  await store.usage.seed({ months: [], bases: [] });
  await store.suspensions.markComplete();
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  await publisher.publish(tableFor({ n1: address }, [webService([endpointOf(backend)])]));
  const refused = new URL(redis.url);
  refused.password = 'wrong';
  const life = async (agent: Agent | false = false): Promise<number> => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const ca = certificate.certificate;
    const { status, body } = await requestAdmin({
      host: '127.0.0.1',
      port,
      path: '/debug/listeners',
      headers,
      ca,
      agent,
    });
    assert.equal(status, 200);
    return (body as ProxySelfView).life ?? 0;
  };
  const proxies = stack.use(new AsyncDisposableStack());
  const all = stack.move();
  let count = 0;
  return {
    address,
    refusedUrl: refused.href,
    life,
    async start(env = {}) {
      count += 1;
      const socket = join(directory.path, `${count}-probe.sock`);
      const settings = {
        WEIR_REDIS_URL: redis.url,
        WEIR_FLEET: fleet,
        WEIR_ADMIN: `127.0.0.1:${port}`,
        WEIR_ADMIN_TLS: directory.path,
        WEIR_ADMIN_TOKEN: TOKEN,
        WEIR_PROBE_SOCKET: socket,
        WEIR_DRAIN: '10s',
      };
      const process = proxies.use(await spawnProxy({ ...settings, ...env }));
      return { process, socket, ready: () => readyAt(socket), refusalsUntilReady: () => refusalsOf(socket) };
    },
    async watchAdmin(signal) {
      const lives: number[] = [];
      let [answeredAt, longestGapMs] = [performance.now(), 0];
      // Keeps one connection open, as a scraper does, because the admin server refuses a flood of new connections.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      signal.addEventListener('abort', () => agent.destroy());
      while (!signal.aborted) {
        const now = await life(agent).catch(() => undefined);
        if (now === undefined) continue;
        longestGapMs = Math.max(longestGapMs, Math.round(performance.now() - answeredAt));
        answeredAt = performance.now();
        if (lives.at(-1) !== now) lives.push(now);
      }
      return { lives, longestGapMs };
    },
    async echo() {
      await using client = await connectClient({ host: address, port: PORT });
      await client.send('echo');
      await client.take(4);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function readyAt(socket: string): Promise<void> {
  await eventually(async () => {
    const { status, body } = await requestSocket(socket);
    assert.equal(status, 200, JSON.stringify(body));
  }, BUSY);
}

async function refusalsOf(socket: string): Promise<string[]> {
  const reported: string[] = [];
  await eventually(async () => {
    const { status, body } = await requestSocket(socket);
    const { reasons } = body as { reasons: { reason: string }[] };
    if (status !== 200) reported.push(reasons.map(({ reason }) => reason).join('; '));
    assert.equal(status, 200);
  }, BUSY);
  return reported;
}

function spawnProxy(env: Record<string, string>): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    env: { PATH: process.env.PATH ?? '', WEIR_NODE: 'n1', WEIR_WORKERS: '1', ...env },
    name: 'weir-proxy',
    mayExit: true,
  });
}
