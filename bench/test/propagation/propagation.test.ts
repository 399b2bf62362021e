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
import type { PropagationRow } from '../../src/propagation/propagation-result.ts';
import { propagationTable, wrongAnswerCount } from '../../src/propagation/propagation-result.ts';
import { changedServices, loopbackNodes } from '../../src/propagation/topology.ts';

const backends = { A: { host: '127.0.0.1', port: 8_001 }, B: { host: '127.0.0.1', port: 8_002 } };

describe('the cluster of a propagation benchmark', () => {
  test('those that are changed are on all nodes, the others on two, and nothing is refused', () => {
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

  test('a change moves one endpoint and leaves all other objects what they are', () => {
    const cluster = propagationCluster({ services: 3, nodes: loopbackNodes(), backends });
    const moved = withServiceEndpoint(cluster, 1, backends.B);
    assert.equal(moved.slices[1]?.ports[0]?.port, 8_002);
    assert.equal(moved.slices[0], cluster.slices[0]);
    assert.equal(moved.services, cluster.services);
  });
});

describe('the judge of a propagation benchmark', () => {
  const move: EndpointChange = { from: 'A', to: 'B', beganAt: 10, writtenAt: 11 };
  const answers = (...said: string[]) =>
    said.map((each, index) => ({ said: each, startedAt: index * 10, endedAt: index * 10 + 5 }));

  test('counts from the write to the first right answer', () => {
    assert.deepEqual(evaluateResponses(answers('A', 'A', 'A', 'B', 'B'), move), { ms: 24, answers: 5, wrong: [] });
  });

  test('says nothing where no answer was right', () => {
    assert.equal(evaluateResponses(answers('A', 'A', 'ECONNREFUSED'), move), undefined);
  });

  test('finds the old endpoint after the new one, errors at any time, and what comes before the write', () => {
    const wrong = (...said: string[]) => evaluateResponses(answers(...said), move)?.wrong;
    assert.deepEqual(wrong('A', 'A', 'B', 'A', 'B'), ['A 5.0 ms after B']);
    assert.deepEqual(wrong('A', 'ECONNREFUSED', 'B', 'ECONNRESET'), ['ECONNREFUSED', 'ECONNRESET']);
    assert.deepEqual(wrong('B', 'B'), ['B before the write']);
    assert.deepEqual(wrong('A', 'B', 'C'), ['C']);
  });

  test('a right answer before the writer has heard of its write took no time', () => {
    assert.equal(evaluateResponses(answers('A', 'B'), { ...move, writtenAt: 40 })?.ms, 0);
  });
});

describe('the client of a propagation benchmark', () => {
  test('asks until some answers after the first right one', { timeout: 20_000 }, async () => {
    await using backend = await startNamedEndpoint('A', { host: '127.0.0.1', port: 0 });
    const { firstResponse, responses } = poll(backend.address, 'A');
    await firstResponse;
    const list = await responses;
    assert.deepEqual([...new Set(list.map(({ said }) => said))], ['A']);
    assert.ok(list.length > 5);
    for (const [index, { startedAt, endedAt }] of list.entries()) {
      assert.ok(endedAt > startedAt && startedAt >= (list[index - 1]?.endedAt ?? 0));
    }
  });

  test('tells a refused, a reset and an empty connection from an answer', async () => {
    const refused = await requestOnce({ host: '127.0.0.1', port: await freePort() });
    assert.equal(refused.said, 'ECONNREFUSED');
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (server.listenerCount('odd') > 0) socket.end();
      else socket.resetAndDestroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    assert.equal((await requestOnce({ host: '127.0.0.1', port })).said, 'ECONNRESET');
    server.on('odd', () => undefined);
    assert.equal((await requestOnce({ host: '127.0.0.1', port })).said, 'closed without an answer');
    server.close();
  });
});

describe('the table of a propagation benchmark', () => {
  const row = (services: number, ...last: number[]): PropagationRow => ({
    source: 'memory',
    services,
    changes: last.map((ms) => ({ ms: [1, 2, ms], answers: 30, wrong: 0 })),
    wrong: [],
    observed: { count: 3, meanMs: 7 },
  });

  test('judges the 99th percentile of the last proxy: 30 ms with ten Services, 60 with more', () => {
    assert.match(propagationTable([row(10, 5, 30)]).join('\n'), /≤ 30 ms, met \(0\.99 ×\)/);
    assert.match(propagationTable([row(10, 5, 31)]).join('\n'), /≤ 30 ms, missed \(1\.02 ×\)/);
    assert.match(propagationTable([row(10_000, 59)]).join('\n'), /≤ 60 ms, met/);
    assert.match(propagationTable([row(10_000, 61)]).join('\n'), /≤ 60 ms, missed/);
  });

  test('says how many answers were wrong', () => {
    const wrong = { ...row(10, 5), changes: [{ ms: [1, 2, 3], answers: 30, wrong: 2 }] };
    assert.equal(wrongAnswerCount(wrong), 2);
    assert.match(propagationTable([wrong]).join('\n'), /\| 30 +\| 2 +\|/);
  });
});

describe('a propagation benchmark', { ...requireProgram('redis-server'), timeout: 120_000 }, () => {
  test('sees every change arrive at every proxy, and no wrong answer', async (t) => {
    await using redis = await startRedis();
    const options = { redis: redis.url, changes: 4, signal: t.signal, say: () => {} };
    const row = await measureRun({ source: 'memory', services: 3 }, options);
    assert.equal(row.changes.length, 4);
    for (const { ms, answers, wrong } of row.changes) {
      assert.equal(ms.length, 3);
      assert.ok(ms.every((each) => each > 0) && answers > 30);
      assert.equal(wrong, 0);
    }
    assert.deepEqual(row.wrong, []);
    assert.equal(row.observed.count, 12);
    assert.ok(row.observed.meanMs > 0);
  });
});
