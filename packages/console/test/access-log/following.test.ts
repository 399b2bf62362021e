// Follows an access log at the admin servers of two proxies, over TLS.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Entry, Heartbeat } from '@weir/model';
import { type AdminServer, createAdminServer, Health, ManualClock, Secret } from '@weir/runtime';
import { eventually, makeCertificate, temporaryDirectory } from '@weir/testkit';
import { mountCertificate } from '../fixtures/mounted-certificate.ts';
import { SHOP_ENTRIES, seededStore, WEB_SERVICE } from '../fixtures/seeded-store.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';

const TOKEN = new Secret('the-token-of-the-fleet');
const PATH = '/api/v1/services/shop/web/access-log';
const accessLog = { requestsPerMillion: 1_000_000 };
const LOGGED_ENTRIES: readonly Entry[] = SHOP_ENTRIES.map((entry) =>
  entry === WEB_SERVICE
    ? { ...WEB_SERVICE, nodes: ['a', 'b'], settings: { ...WEB_SERVICE.settings, accessLog } as never }
    : entry,
);

interface TestProxy extends AsyncDisposable {
  readonly admin: NonNullable<Heartbeat['admin']>;
  /** The Services that were asked for. */
  readonly asked: (string | null)[];
  send(text: string): void;
}

/** An admin server that sends the same lines to each follower. */
async function startTestProxy(tls: string | undefined): Promise<TestProxy> {
  const followers = new Set<ServerResponse>();
  const asked: (string | null)[] = [];
  const server: AdminServer = createAdminServer({
    host: '127.0.0.1',
    port: 0,
    health: new Health(),
    metrics: async () => assert.fail('nobody asks for metrics'),
    tls,
    token: TOKEN,
    streams: {
      '/access-log': (query, response) => {
        asked.push(query.get('service'));
        followers.add(response.writeHead(200));
        response.write('\n');
        return undefined;
      },
    },
  });
  await server.start(new AbortController().signal);
  return {
    admin: { ...server.address(), tls: tls !== undefined },
    asked,
    send: (text) => followers.forEach((response) => void response.write(text)),
    [Symbol.asyncDispose]: async () => server.close(),
  };
}

function heartbeatOf(node: string, admin: Heartbeat['admin']): Heartbeat {
  return {
    node,
    life: 2,
    version: '0.0.0',
    startedAt: 0,
    draining: false,
    addresses: ['127.0.0.1'],
    applied: null,
    cutoffSequence: 0,
    listeners: [],
    workers: 1,
    connections: 0,
    ...(admin === undefined ? {} : { admin }),
  };
}

interface Followed extends AsyncDisposable {
  readonly text: () => string;
}

async function follow(console: TestConsole): Promise<Followed> {
  const stopping = new AbortController();
  const response = await fetch(new URL(PATH, console.url), { signal: stopping.signal });
  assert.equal(response.status, 200);
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
  })().catch(() => undefined);
  return {
    text: () => text.replace(/^\n+/gm, ''),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await reading;
    },
  };
}

test('merges the complete lines of all proxies of the Service, and reports a proxy whose lines are missing', async () => {
  await using directory = temporaryDirectory();
  const certificate = makeCertificate({ name: 'weir-proxy' });
  const tls = mountCertificate(directory, certificate, 'one');
  const ca = join(directory.path, 'ca.crt');
  writeFileSync(ca, certificate.chain);
  await using first = await startTestProxy(tls);
  await using second = await startTestProxy(tls);
  const seeded = await seededStore(new ManualClock(Date.now()), LOGGED_ENTRIES);
  const { heartbeats } = seeded.store;
  await heartbeats.record(heartbeatOf('a', first.admin));
  // This proxy listens on all addresses.
  await heartbeats.record(heartbeatOf('b', { ...second.admin, host: '0.0.0.0' }));
  await heartbeats.record(heartbeatOf('c', first.admin));
  const proxyAdmin = { token: TOKEN, ca, serverName: 'weir-proxy' };
  await using console = await startTestConsole({ seeded, proxyAdmin });
  await using followed = await follow(console);
  await eventually(() => assert.deepEqual([...first.asked, ...second.asked], ['shop/web', 'shop/web']));
  first.send('{"a":');
  second.send('{"b":1}\n');
  await eventually(() => assert.match(followed.text(), /^\{"b":1\}$/m));
  first.send('1}\n{"a":2}\n');
  await eventually(() => assert.match(followed.text(), /^\{"a":1\}\n\{"a":2\}$/m));
  // A proxy of an earlier version sends no address.
  await heartbeats.record(heartbeatOf('b', undefined));
  await eventually(() =>
    assert.match(
      followed.text(),
      /^\{"problem":"lines of the proxy on node b are missing: its admin server does not listen/m,
    ),
  );
});

test('never sends the token to a server without the right certificate, or over plain HTTP to another machine', async () => {
  await using directory = temporaryDirectory();
  const tls = mountCertificate(directory, makeCertificate({ name: 'weir-proxy' }), 'one');
  const ca = join(directory.path, 'ca.crt');
  writeFileSync(ca, makeCertificate({ name: 'weir-proxy' }).chain);
  await using proxy = await startTestProxy(tls);
  const seeded = await seededStore(new ManualClock(Date.now()), LOGGED_ENTRIES);
  await seeded.store.heartbeats.record(heartbeatOf('a', proxy.admin));
  await seeded.store.heartbeats.record(heartbeatOf('b', { host: '192.0.2.1', port: 80, tls: false }));
  await using console = await startTestConsole({ seeded, proxyAdmin: { token: TOKEN, ca, serverName: 'weir-proxy' } });
  await using followed = await follow(console);
  await eventually(() => {
    assert.match(followed.text(), /node a are missing: 127\.0\.0\.1:[0-9]+: .*(certificate|self-signed)/);
    assert.match(followed.text(), /node b are missing: 192\.0\.2\.1:80: .*the token would be sent unencrypted/);
  });
  assert.deepEqual(proxy.asked, []);
});

test('says that a Service has no access log', async () => {
  await using console = await startTestConsole();
  const { status, json } = await console.request(PATH);
  assert.equal(status, 404);
  assert.equal(json.error.code, 'NoAccessLog');
  assert.match(json.error.message, /set the annotation weir\.dev\/access-log: "true"/);
});
