import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { allocationsFor, DEFAULT_FLEET_SETTINGS, EMPTY_TABLE, entriesOf, translate } from '@weir/model';
import { freePort } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { measureRun, startNamedEndpoint } from '../../src/propagation/measure-run.ts';
import { type EndpointChange, evaluateResponses, poll, requestOnce } from '../../src/propagation/polling-client.ts';
import { propagationCluster, withServiceEndpoint } from '../../src/propagation/propagation-cluster.ts';
import {
  type PropagationReading,
  type PropagationRow,
  propagationTable,
  summarizePropagation,
} from '../../src/propagation/propagation-result.ts';
import { changedServices, loopbackNodes } from '../../src/propagation/topology.ts';

const backends = { A: { host: '127.0.0.1', port: 8_001 }, B: { host: '127.0.0.1', port: 8_002 } };

describe('propagationCluster', () => {
  test('places changing Services on all nodes and other Services on two', () => {
    const cluster = propagationCluster({ services: 40, nodes: loopbackNodes(), backends });
    const { table, problems } = translate(
      { ...cluster, settings: DEFAULT_FLEET_SETTINGS },
      allocationsFor(EMPTY_TABLE),
    );
    assert.deepEqual(problems, []);
    const changed = changedServices(40);
    assert.deepEqual(changed, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36]);
    assert.equal(entriesOf(table, 'listener').length, 10 * 3 + 30 * 2);
    for (const index of changed) {
      const { uid } = cluster.services[index] ?? assert.fail();
      assert.equal(entriesOf(table, 'listener').filter(({ service }) => service === uid).length, 3);
    }
  });

  test('changes one EndpointSlice and keeps all other objects', () => {
    const cluster = propagationCluster({ services: 3, nodes: loopbackNodes(), backends });
    const moved = withServiceEndpoint(cluster, 1, backends.B);
    assert.equal(moved.slices[1]?.ports[0]?.port, 8_002);
    assert.equal(moved.slices[0], cluster.slices[0]);
    assert.equal(moved.services, cluster.services);
  });
});

describe('evaluateResponses', () => {
  const change: EndpointChange = { from: 'A', to: 'B', startedAt: 10, writtenAt: 11 };
  const responses = (...texts: string[]) =>
    texts.map((text, index) => ({ text, startedAt: index * 10, endedAt: index * 10 + 5 }));

  test('measures from the write to the first right response', () => {
    assert.deepEqual(evaluateResponses(responses('A', 'A', 'A', 'B', 'B'), change), {
      ms: 24,
      responses: 5,
      wrong: [],
    });
  });

  test('returns undefined if no response was right', () => {
    assert.equal(evaluateResponses(responses('A', 'A', 'ECONNREFUSED'), change), undefined);
  });

  test('finds the old endpoint after the new endpoint, errors, and the new endpoint before the write', () => {
    const wrong = (...texts: string[]) => evaluateResponses(responses(...texts), change)?.wrong;
    assert.deepEqual(wrong('A', 'A', 'B', 'A', 'B'), ['response of A 5.0 ms after a response of B']);
    assert.deepEqual(wrong('A', 'ECONNREFUSED', 'B', 'ECONNRESET'), ['ECONNREFUSED', 'ECONNRESET']);
    assert.deepEqual(wrong('B', 'B'), ['response of B before the write']);
    assert.deepEqual(wrong('A', 'B', 'C'), ['C']);
  });

  test('measures 0 ms if the first right response precedes the end of the write', () => {
    assert.equal(evaluateResponses(responses('A', 'B'), { ...change, writtenAt: 40 })?.ms, 0);
  });
});

describe('poll', () => {
  test('continues for some responses after the first right response', { timeout: 20_000 }, async () => {
    await using backend = await startNamedEndpoint('A', { host: '127.0.0.1', port: 0 });
    const { firstResponse, responses } = poll(backend.address, 'A');
    await firstResponse;
    const list = await responses;
    assert.deepEqual([...new Set(list.map(({ text }) => text))], ['A']);
    assert.ok(list.length > 5);
    for (const [index, { startedAt, endedAt }] of list.entries()) {
      assert.ok(endedAt > startedAt && startedAt >= (list[index - 1]?.endedAt ?? 0));
    }
  });

  test('reports refused, reset and empty connections', async () => {
    const refused = await requestOnce({ host: '127.0.0.1', port: await freePort() });
    assert.equal(refused.text, 'ECONNREFUSED');
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (server.listenerCount('odd') > 0) socket.end();
      else socket.resetAndDestroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    assert.equal((await requestOnce({ host: '127.0.0.1', port })).text, 'ECONNRESET');
    server.on('odd', () => undefined);
    assert.equal((await requestOnce({ host: '127.0.0.1', port })).text, 'closed without a response');
    server.close();
  });
});

describe('propagationTable', () => {
  const summary = (services: number, changes: readonly PropagationReading[]): PropagationRow =>
    summarizePropagation({
      source: 'memory',
      services,
      changes,
      wrongExamples: [],
      observed: { count: 3, meanMs: 7 },
    });
  const row = (services: number, ...lastProxyMs: number[]): PropagationRow =>
    summary(
      services,
      lastProxyMs.map((ms) => ({ ms: [1, 2, ms], responses: 30, wrongResponses: 0 })),
    );

  test('has a target for the 99th percentile of the last proxy: 30 ms with ten Services, 60 ms with more', () => {
    assert.match(propagationTable([row(10, 5, 30)]).join('\n'), /≤ 30 ms, met \(0\.99 ×\)/);
    assert.match(propagationTable([row(10, 5, 31)]).join('\n'), /≤ 30 ms, missed \(1\.02 ×\)/);
    assert.match(propagationTable([row(10_000, 59)]).join('\n'), /≤ 60 ms, met/);
    assert.match(propagationTable([row(10_000, 61)]).join('\n'), /≤ 60 ms, missed/);
  });

  test('counts wrong responses', () => {
    const wrong = summary(10, [{ ms: [1, 2, 3], responses: 30, wrongResponses: 2 }]);
    assert.match(propagationTable([wrong]).join('\n'), /\| 30 +\| 2 +\|/);
  });
});

describe('measureRun', { ...requireProgram('redis-server'), timeout: 120_000 }, () => {
  test('observes every change at every proxy without a wrong response', async (t) => {
    await using redis = await startRedis();
    const options = { redis: redis.url, changes: 4, signal: t.signal, logProgress: () => {} };
    const row = await measureRun({ source: 'memory', services: 3 }, options);
    assert.equal(row.changes.length, 4);
    for (const { ms, responses, wrongResponses } of row.changes) {
      assert.equal(ms.length, 3);
      assert.ok(ms.every((each) => each > 0) && responses > 30);
      assert.equal(wrongResponses, 0);
    }
    assert.deepEqual(row.wrongExamples, []);
    assert.equal(row.observed.count, 12);
    assert.ok(row.observed.meanMs > 0);
  });
});
