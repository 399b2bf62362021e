import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { silentLogger, systemClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { kubernetesSuspensionWriter, type SuspensionWriter } from '../../src/index.ts';

const REQUEST = {
  target: { kind: 'tenant', tenant: 'shop' },
  message: 'Stop.',
  until: null,
  requestedBy: 'alice',
  replace: false,
} as const;
const PATH = '/apis/weir.dev/v1alpha1/suspensions/tenant.shop';

test('the object is applied first, then the cut-off of its uid is in the store', async () => {
  await using world = await startTestApiServer(({ body }) => {
    const { metadata, spec } = JSON.parse(body);
    return [200, { metadata: { ...metadata, uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:00Z' }, spec }];
  });
  const cutoff = await world.writer.suspend(REQUEST);
  assert.equal(cutoff.uid, 'uid-1');
  assert.deepEqual(cutoff.origin, { kind: 'kubernetes' });
  assert.deepEqual((await world.store.suspensions.read()).suspensions, [cutoff]);
  const [asked] = world.asked;
  assert.equal(asked?.method, 'PATCH');
  assert.equal(asked?.type, 'application/apply-patch+yaml');
  assert.match(asked?.path ?? '', new RegExp(`^${PATH}\\?.*fieldManager=weir-console%3Aalice&force=false$`));
  const applied = JSON.parse(asked?.body ?? '');
  assert.deepEqual(applied.metadata.annotations, { 'weir.dev/made-by': 'alice' });
  assert.deepEqual(applied.spec, {
    target: { type: 'Tenant', tenant: 'shop' },
    message: 'Stop.',
  });
});

test('while the API server is away the cut-off comes alone, with the id of the request', async () => {
  for (const status of [500, 503, 429]) {
    await using world = await startTestApiServer(() => [status, { kind: 'Status', message: 'etcd is away' }]);
    const cutoff = await world.writer.suspend(REQUEST);
    assert.match(cutoff.uid, /^request-/);
    assert.deepEqual(cutoff.origin, { kind: 'store' });
    assert.equal((await world.store.suspensions.read()).suspensions.length, 1);
  }
});

test('what is in the store alone may be of somebody else: it stays, unless one asks to replace it', async () => {
  await using world = await startTestApiServer(() => [503, {}]);
  const { uid } = await world.writer.suspend(REQUEST);
  assert.equal((await world.writer.suspend(REQUEST)).uid, uid, 'the very same again');
  const other = { ...REQUEST, message: 'Stop it!', requestedBy: 'bob' };
  await assert.rejects(world.writer.suspend(other), { code: 'AlreadySuspended' });
  assert.equal((await world.writer.suspend({ ...other, replace: true })).uid, uid);
  assert.deepEqual(
    (await world.store.suspensions.read()).suspensions.map(({ message }) => message),
    ['Stop it!'],
  );
});

test('an end that somebody else has given is not taken for the one that was asked for', async () => {
  await using world = await startTestApiServer(({ body }) => {
    const { metadata, spec } = JSON.parse(body);
    return [200, { metadata: { ...metadata, uid: 'uid-1' }, spec: { ...spec, until: '2099-01-01T00:00:00Z' } }];
  });
  await assert.rejects(world.writer.suspend(REQUEST), { code: 'AlreadySuspended' });
  assert.deepEqual((await world.store.suspensions.read()).suspensions, []);
});

test('a person whose name the API server does not take for a field manager has one all the same', async () => {
  await using world = await startTestApiServer(() => [503, {}]);
  for (const requestedBy of ['ä', 'a'.repeat(120)]) {
    await world.writer.suspend({ ...REQUEST, requestedBy });
    assert.match(world.asked.at(-1)?.path ?? '', /fieldManager=weir-console%3Asha256%3A[0-9a-f]{64}&/);
  }
});

test('an API server that nobody reaches is away, too', async () => {
  await using world = await startTestApiServer(() => [200, {}]);
  await world.closeServer();
  assert.deepEqual((await world.writer.suspend(REQUEST)).origin, { kind: 'store' });
});

test('a refusal is told in the words of the API server, and nobody is cut off', async () => {
  await using world = await startTestApiServer(() => [
    403,
    { kind: 'Status', message: 'console cannot patch suspensions' },
  ]);
  await assert.rejects(
    world.writer.suspend(REQUEST),
    /create Suspension "tenant\.shop".*403.*console cannot patch suspensions/,
  );
  assert.deepEqual((await world.store.suspensions.read()).suspensions, []);
});

test('without the custom resource it says what is missing', async () => {
  await using world = await startTestApiServer(() => [404, 'page not found']);
  await assert.rejects(world.writer.suspend(REQUEST), /custom resource is not installed/);
});

test('the object was made but the store is away: the message says which of the two', async () => {
  await using world = await startTestApiServer(({ body }) => [
    200,
    { metadata: { ...JSON.parse(body).metadata, uid: 'u' } },
  ]);
  world.store.faults.goAway();
  await assert.rejects(
    world.writer.suspend(REQUEST),
    /Suspension "tenant\.shop" was created, but the store does not take/,
  );
});

test('resuming deletes that very object, then the entry', async () => {
  await using world = await startTestApiServer(({ method, body }) =>
    method === 'DELETE'
      ? [200, { kind: 'Status' }]
      : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
  );
  await world.writer.resume(await world.writer.suspend(REQUEST));
  const deletion = world.asked.at(-1);
  assert.equal(deletion?.path, PATH);
  assert.deepEqual(JSON.parse(deletion?.body ?? '').preconditions, { uid: 'uid-1' });
  assert.deepEqual((await world.store.suspensions.read()).suspensions, []);
});

test('an object that is already gone, or another by now, does not keep the entry', async () => {
  for (const status of [404, 409]) {
    await using world = await startTestApiServer(({ method, body }) =>
      method === 'DELETE'
        ? [status, { kind: 'Status' }]
        : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
    );
    await world.writer.resume(await world.writer.suspend(REQUEST));
    assert.deepEqual((await world.store.suspensions.read()).suspensions, []);
  }
});

test('the API server is away: nothing is lifted, and the message says how to', async () => {
  await using world = await startTestApiServer(({ method, body }) =>
    method === 'DELETE' ? [503, {}] : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
  );
  const cutoff = await world.writer.suspend(REQUEST);
  await assert.rejects(
    world.writer.resume(cutoff),
    /try again, or once it is back: kubectl delete suspension tenant\.shop/,
  );
  assert.equal((await world.store.suspensions.read()).suspensions.length, 1);
});

interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

interface TestApiServer extends AsyncDisposable {
  readonly writer: SuspensionWriter;
  readonly store: MemoryStore;
  readonly asked: readonly RecordedRequest[];
  closeServer(): Promise<void>;
}

/** An API server that answers as told. */
async function startTestApiServer(
  answer: (asked: RecordedRequest) => readonly [status: number, body: unknown],
): Promise<TestApiServer> {
  const asked: RecordedRequest[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const one = {
      method: request.method ?? '',
      path: request.url ?? '',
      type: request.headers['content-type'] ?? '',
      body,
    };
    asked.push(one);
    const [status, json] = answer(one);
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(json));
  });
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromClusterAndUser(
    { name: 'test', server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, skipTLSVerify: true },
    { name: 'console' },
  );
  const store = new MemoryStore();
  const closeServer = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
  return {
    writer: kubernetesSuspensionWriter({
      kubeconfig,
      cutoffs: store.suspensions,
      clock: systemClock,
      log: silentLogger(),
    }),
    store,
    asked,
    closeServer,
    async [Symbol.asyncDispose]() {
      await closeServer();
      await store.close();
    },
  };
}
