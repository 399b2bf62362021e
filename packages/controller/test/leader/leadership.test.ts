import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { MemoryStore } from '@weir/store';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { LeadershipLost, leaderOnlyApi, leaderOnlyStore } from '../../src/leader/leadership.ts';

describe('a write in the name of the lead', () => {
  test('is sent while there is one, and neither counted nor sent afterwards; reads go through', async (context) => {
    const heard: string[] = [];
    const server = createServer(({ method }, response) => {
      heard.push(method ?? '');
      response.end('{}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server[Symbol.asyncDispose]());
    const lead = { isLeader: true };
    const answers: string[] = [];
    const api = apiTo(context, server.address() as AddressInfo, (verb, code) => answers.push(`${verb} ${code}`));
    const writing = leaderOnlyApi(api, lead);
    const write = () => writing.request({ method: 'PATCH', path: '/x', body: { a: 1 } });
    await write();
    await write();
    lead.isLeader = false;
    await assert.rejects(write, LeadershipLost);
    await writing.request({ method: 'GET', path: '/x' });
    assert.deepEqual(heard, ['PATCH', 'PATCH', 'GET']);
    assert.deepEqual(answers, ['PATCH 200', 'PATCH 200', 'GET 200']);
  });

  test('is not sent when the lead goes while its connection is made', async (context) => {
    let isWritten = false;
    const server = createTcpServer((socket) => socket.on('data', () => (isWritten = true)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server[Symbol.asyncDispose]());
    let asked = 0;
    const lead = {
      get isLeader() {
        asked += 1;
        return false;
      },
    };
    const api = apiTo(context, server.address() as AddressInfo);
    const [connection] = await Promise.all([
      once(server, 'connection'),
      assert.rejects(leaderOnlyApi(api, lead).request({ method: 'PATCH', path: '/x', body: {} }), LeadershipLost),
    ]);
    const [socket] = connection as [import('node:net').Socket];
    if (!socket.closed) await once(socket, 'close');
    assert.deepEqual([isWritten, asked], [false, 1]);
  });

  test('to the store is refused without the lead: the claim of its token, too', async () => {
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
    assert.equal((await suspensions.read()).complete, false);
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
