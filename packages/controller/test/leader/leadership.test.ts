import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { MemoryStore } from '@weir/store';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { LeadershipLost, leaderOnlyApi, leaderOnlyStore } from '../../src/leader/leadership.ts';

describe('a leader-only write', () => {
  test('is sent while this controller leads, and neither sent nor counted afterwards; reads pass', async (context) => {
    const methods: string[] = [];
    const server = createServer(({ method }, response) => {
      methods.push(method ?? '');
      response.end('{}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server[Symbol.asyncDispose]());
    const leadership = { isLeader: true };
    const responses: string[] = [];
    const api = apiTo(context, server.address() as AddressInfo, (verb, code) => responses.push(`${verb} ${code}`));
    const leaderApi = leaderOnlyApi(api, leadership);
    const write = () => leaderApi.request({ method: 'PATCH', path: '/x', body: { a: 1 } });
    await write();
    await write();
    leadership.isLeader = false;
    await assert.rejects(write, LeadershipLost);
    await leaderApi.request({ method: 'GET', path: '/x' });
    assert.deepEqual(methods, ['PATCH', 'PATCH', 'GET']);
    assert.deepEqual(responses, ['PATCH 200', 'PATCH 200', 'GET 200']);
  });

  test('is not sent if leadership is lost while the connection opens', async (context) => {
    let isWritten = false;
    const server = createTcpServer((socket) => socket.on('data', () => (isWritten = true)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server[Symbol.asyncDispose]());
    let checks = 0;
    const leadership = {
      get isLeader() {
        checks += 1;
        return false;
      },
    };
    const api = apiTo(context, server.address() as AddressInfo);
    const [connection] = await Promise.all([
      once(server, 'connection'),
      assert.rejects(leaderOnlyApi(api, leadership).request({ method: 'PATCH', path: '/x', body: {} }), LeadershipLost),
    ]);
    const [socket] = connection as [import('node:net').Socket];
    if (!socket.closed) await once(socket, 'close');
    assert.deepEqual([isWritten, checks], [false, 1]);
  });

  test('to the store is refused without leadership, and so is the claim of the table', async () => {
    const store = new MemoryStore();
    const { table, suspensions, usage } = leaderOnlyStore(store, { isLeader: false });
    const position = { epoch: 1, revision: 0, id: 'x' };
    for (const write of [
      () => table.claimLeader(),
      () => table.openEpoch({ leader: 1, id: 'x' }),
      () => table.publish({ leader: 1, predecessor: position, id: 'y', changes: [], complete: true }),
      () => suspensions.remove('x'),
      () => suspensions.markComplete(),
      () => usage.seed({ months: [], bases: [] }),
      () => usage.fold('a', 1),
    ])
      await assert.rejects(write, LeadershipLost);
    assert.equal(await table.meta(), undefined);
    assert.equal((await suspensions.read()).completeSince, null);
    assert.equal(await usage.isSeeded(), false);
  });
});

function apiTo(
  context: TestContext,
  { port }: AddressInfo,
  onResponse?: (verb: string, code?: number) => void,
): KubeApi {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true }, { name: 'u' });
  const api = new KubeApi(config, onResponse && { onResponse });
  context.after(() => api.close());
  return api;
}
