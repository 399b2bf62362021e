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

test('applies the Suspension object, then writes an entry with its UID to the store', async () => {
  await using server = await startTestApiServer(({ body }) => {
    const { metadata, spec } = JSON.parse(body);
    return [200, { metadata: { ...metadata, uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:00Z' }, spec }];
  });
  const suspension = await server.writer.suspend(REQUEST);
  assert.equal(suspension.uid, 'uid-1');
  assert.equal(suspension.madeBy, 'alice');
  assert.deepEqual(suspension.origin, { kind: 'kubernetes' });
  assert.deepEqual((await server.store.suspensions.read()).suspensions, [suspension]);
  const [request] = server.requests;
  assert.equal(request?.method, 'PATCH');
  assert.equal(request?.type, 'application/apply-patch+yaml');
  assert.match(request?.path ?? '', new RegExp(`^${PATH}\\?.*fieldManager=weir-console%3Aalice&force=false$`));
  const applied = JSON.parse(request?.body ?? '');
  assert.deepEqual(applied.metadata.annotations, { 'weir.dev/made-by': 'alice' });
  assert.deepEqual(applied.spec, {
    target: { type: 'Tenant', tenant: 'shop' },
    message: 'Stop.',
  });
});

test('writes only the entry, with an id of the request, while the API server is unreachable', async () => {
  for (const status of [500, 503, 429]) {
    await using server = await startTestApiServer(() => [status, { kind: 'Status', message: 'etcd is away' }]);
    const suspension = await server.writer.suspend(REQUEST);
    assert.match(suspension.uid, /^request-/);
    assert.deepEqual(suspension.origin, { kind: 'store' });
    assert.equal((await server.store.suspensions.read()).suspensions.length, 1);
  }
});

test('replaces an entry of the store that another user may have made only if requested', async () => {
  await using server = await startTestApiServer(() => [503, {}]);
  const { uid } = await server.writer.suspend(REQUEST);
  assert.equal((await server.writer.suspend(REQUEST)).uid, uid, 'an equal request is accepted');
  assert.equal(
    (await server.writer.suspend({ ...REQUEST, message: 'Stop, please.' })).uid,
    uid,
    'alice changes her own',
  );
  const other = { ...REQUEST, message: 'Stop it!', requestedBy: 'bob' };
  await assert.rejects(server.writer.suspend(other), { code: 'AlreadySuspended', message: /was made by alice;/ });
  assert.equal((await server.writer.suspend({ ...other, replace: true })).uid, uid);
  assert.deepEqual(
    (await server.store.suspensions.read()).suspensions.map(({ message, madeBy }) => [message, madeBy]),
    [['Stop it!', 'bob']],
  );
});

test('refuses a Suspension whose end another user set', async () => {
  await using server = await startTestApiServer(({ body }) => {
    const { metadata, spec } = JSON.parse(body);
    return [200, { metadata: { ...metadata, uid: 'uid-1' }, spec: { ...spec, until: '2099-01-01T00:00:00Z' } }];
  });
  await assert.rejects(server.writer.suspend(REQUEST), { code: 'AlreadySuspended' });
  assert.deepEqual((await server.store.suspensions.read()).suspensions, []);
});

test('uses a hash as field manager if the name of the user is not allowed', async () => {
  await using server = await startTestApiServer(() => [503, {}]);
  for (const requestedBy of ['ä', 'a'.repeat(120)]) {
    await server.writer.suspend({ ...REQUEST, requestedBy });
    assert.match(server.requests.at(-1)?.path ?? '', /fieldManager=weir-console%3Asha256%3A[0-9a-f]{64}&/);
  }
});

test('writes only the entry if the connection to the API server fails', async () => {
  await using server = await startTestApiServer(() => [200, {}]);
  await server.closeServer();
  assert.deepEqual((await server.writer.suspend(REQUEST)).origin, { kind: 'store' });
});

test('reports a refusal with the message of the API server and writes no entry', async () => {
  await using server = await startTestApiServer(() => [
    403,
    { kind: 'Status', message: 'console cannot patch suspensions' },
  ]);
  await assert.rejects(
    server.writer.suspend(REQUEST),
    /create Suspension "tenant\.shop".*403.*console cannot patch suspensions/,
  );
  assert.deepEqual((await server.store.suspensions.read()).suspensions, []);
});

test('reports that the custom resource is not installed', async () => {
  await using server = await startTestApiServer(() => [404, 'page not found']);
  await assert.rejects(server.writer.suspend(REQUEST), /custom resource is not installed/);
});

test('reports that the object was created if only the store is unreachable', async () => {
  await using server = await startTestApiServer(({ body }) => [
    200,
    { metadata: { ...JSON.parse(body).metadata, uid: 'u' } },
  ]);
  server.store.faults.goAway();
  await assert.rejects(
    server.writer.suspend(REQUEST),
    /Suspension "tenant\.shop" was created but has no effect yet, because the console failed to write it to the store/,
  );
});

test('resume deletes the object with the same UID, then the entry', async () => {
  await using server = await startTestApiServer(({ method, body }) =>
    method === 'DELETE'
      ? [200, { kind: 'Status' }]
      : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
  );
  await server.writer.resume(await server.writer.suspend(REQUEST), 'alice');
  const deletion = server.requests.at(-1);
  assert.equal(deletion?.path, PATH);
  assert.deepEqual(JSON.parse(deletion?.body ?? '').preconditions, { uid: 'uid-1' });
  const [release] = await server.store.suspensions.audit();
  assert.deepEqual(release?.release, { why: 'resumed', by: 'alice' });
  assert.deepEqual((await server.store.suspensions.read()).suspensions, []);
});

test('resume deletes the entry if the object is gone or was replaced', async () => {
  for (const status of [404, 409]) {
    await using server = await startTestApiServer(({ method, body }) =>
      method === 'DELETE'
        ? [status, { kind: 'Status' }]
        : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
    );
    await server.writer.resume(await server.writer.suspend(REQUEST), 'alice');
    assert.deepEqual((await server.store.suspensions.read()).suspensions, []);
  }
});

test('resume keeps the entry and reports a fix while the API server is unreachable', async () => {
  await using server = await startTestApiServer(({ method, body }) =>
    method === 'DELETE' ? [503, {}] : [200, { metadata: { ...JSON.parse(body).metadata, uid: 'uid-1' } }],
  );
  const suspension = await server.writer.suspend(REQUEST);
  await assert.rejects(
    server.writer.resume(suspension, 'alice'),
    /once it is reachable, try again or use kubectl delete suspension tenant\.shop/,
  );
  assert.equal((await server.store.suspensions.read()).suspensions.length, 1);
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
  readonly requests: readonly RecordedRequest[];
  closeServer(): Promise<void>;
}

/** Starts a fake API server whose responses come from `respond`. */
async function startTestApiServer(
  respond: (request: RecordedRequest) => readonly [status: number, body: unknown],
): Promise<TestApiServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer(async (incoming, response) => {
    let body = '';
    for await (const chunk of incoming) body += chunk;
    const request = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      type: incoming.headers['content-type'] ?? '',
      body,
    };
    requests.push(request);
    const [status, json] = respond(request);
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
      suspensionStore: store.suspensions,
      clock: systemClock,
      log: silentLogger(),
    }),
    store,
    requests,
    closeServer,
    async [Symbol.asyncDispose]() {
      await closeServer();
      await store.close();
    },
  };
}
