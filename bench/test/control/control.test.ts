import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { SourceSnapshot } from '@weir/controller';
import { allocationsFor, EMPTY_TABLE, type Translation, translate } from '@weir/model';
import { requireProgram, startRedis } from '@weir/tools';
import type { ChangeRow, ControllerStartRow } from '../../src/control/control-result.ts';
import { controlChangeTable, controllerStartTable } from '../../src/control/control-result.ts';
import type { ControllerRpc } from '../../src/control/controller-process.ts';
import { editsFor } from '../../src/control/edits.ts';
import { FollowerPool } from '../../src/control/follower-pool.ts';
import { IN_MEMORY_CLUSTER_SETTINGS, inMemoryCluster } from '../../src/control/in-memory-cluster.ts';
import { type ClusterMeasurementOptions, measureCluster } from '../../src/control/measure-cluster.ts';
import type { ChangeScenario } from '../../src/control/options.ts';
import { tableDigest } from '../../src/control/table-digest.ts';
import { RpcProcess } from '../../src/processes/rpc.ts';

const scenarios: readonly ChangeScenario[] = ['endpoint', 'service', 'rollout', 'tenants'];
const decided = (cluster: SourceSnapshot): Translation =>
  translate({ ...cluster, settings: IN_MEMORY_CLUSTER_SETTINGS }, allocationsFor(EMPTY_TABLE));

describe('the cluster of a control benchmark', () => {
  test('all of its Services are served on two nodes each, with ten endpoints', () => {
    const { table, problems } = decided(inMemoryCluster(30));
    assert.deepEqual(problems, []);
    const entries = [...table.entries.values()];
    assert.equal(entries.filter(({ kind }) => kind === 'listener').length, 60);
    const endpoints = entries.filter((entry) => entry.kind === 'endpoints');
    assert.equal(endpoints.flatMap((entry) => entry.endpoints).length, 300);
  });

  test('ten thousand Services are in a thousand namespaces, sorted as a source sorts', () => {
    const { namespaces, services } = inMemoryCluster(10_000);
    assert.equal(namespaces.length, 1_000);
    assert.equal(new Set(services.map(({ namespace }) => namespace)).size, 1_000);
    const keys = services.map(({ namespace, name }) => `${namespace} ${name}`);
    assert.deepEqual(keys, [...keys].sort());
  });

  for (const scenario of scenarios) {
    test(`each change of "${scenario}" changes the table, in every round, and brings no problem`, () => {
      let cluster = inMemoryCluster(4);
      const digest = (): string => tableDigest(decided(cluster).table);
      // twice all of them: a change must not meet one that is as it would make it
      for (let round = 0; round < 8; round++) {
        for (const edit of editsFor('endpoint', round, cluster).slice(round % 2)) cluster = edit(cluster);
        for (const edit of editsFor(scenario, round, cluster)) {
          const before = digest();
          cluster = edit(cluster);
          assert.notEqual(digest(), before, `round ${round}`);
          assert.deepEqual(decided(cluster).problems, []);
        }
      }
    });
  }

  test('tenants at once are a hundred, each with one of its Services', () => {
    const before = inMemoryCluster(300);
    const [edit] = editsFor('tenants', 0, before);
    const after = edit?.(before) ?? before;
    const touched = after.slices.filter((slice, index) => slice !== before.slices[index]);
    assert.equal(touched.length, 100);
    assert.equal(new Set(touched.map(({ namespace }) => namespace)).size, 100);
  });
});

describe('the table of a control benchmark', () => {
  const started = { revision: 1, entries: 5, bytes: 2048, objectsKiB: 1024, residentKiB: 2048 };
  const start = (services: number, ms: number, peakMiB: number): ControllerStartRow => ({
    services,
    controllers: [{ ...started, ms, peakKiB: peakMiB * 1024 }],
    followerMs: 7,
    followerBytes: 1024,
  });
  const change = (row: Partial<ChangeRow>, ...times: number[]): ChangeRow => ({
    services: 10_000,
    followers: 3,
    scenario: 'endpoint',
    changes: times.map((allMs) => ({ allMs, halfMs: 1, sentBytes: 1024, receivedBytes: 512 })),
    isProved: true,
    ...row,
  });

  test('a start of 10,000 Services is judged by its worst, others are not', () => {
    assert.match(controllerStartTable([start(10_000, 5_000, 600)]).join('\n'), /≤ 5000 ms, met; ≤ 600 MiB, met/);
    assert.match(controllerStartTable([start(10_000, 5_001, 601)]).join('\n'), /≤ 5000 ms, missed; ≤ 600 MiB, missed/);
    assert.doesNotMatch(controllerStartTable([start(1_000, 9_000, 900)]).join('\n'), /≤/);
  });

  test('a change whose followers were not proved says so', () => {
    assert.match(controlChangeTable([change({ isProved: false }, 10)]).join('\n'), /endpoint \(not proved\)/);
    assert.doesNotMatch(controlChangeTable([change({}, 10)]).join('\n'), /not proved/);
  });

  test('a change is judged by its 99th percentile, with three followers only', () => {
    assert.match(controlChangeTable([change({}, 10, 59)]).join('\n'), /≤ 60 ms, met/);
    assert.match(controlChangeTable([change({}, 10, 70)]).join('\n'), /≤ 60 ms, missed/);
    assert.match(controlChangeTable([change({ services: 10 }, 10, 31)]).join('\n'), /≤ 30 ms, missed/);
    assert.doesNotMatch(controlChangeTable([change({ followers: 100 }, 10, 70)]).join('\n'), /≤/);
    assert.doesNotMatch(controlChangeTable([change({ scenario: 'tenants' }, 10, 70)]).join('\n'), /≤/);
  });
});

describe('a control benchmark', requireProgram('redis-server'), () => {
  const controllerOn = (context: TestContext, url: string, services: number): RpcProcess<ControllerRpc> => {
    const program = new URL('../../src/control/controller-process.ts', import.meta.url);
    const controller = new RpcProcess<ControllerRpc>(program, [url, 'test', services]);
    context.after(() => controller[Symbol.asyncDispose]());
    return controller;
  };

  test('measures every change at every follower, and a change costs less than the table', async (t) => {
    await using redis = await startRedis();
    const options: ClusterMeasurementOptions = {
      ...{ url: redis.url, services: 40, followers: 5, rounds: 2, starts: 1, scenarios },
      ...{ signal: t.signal, say: () => {} },
    };
    const { start, changes, failure } = await measureCluster(options);
    assert.equal(failure, undefined);
    assert.ok(changes.every(({ isProved }) => isProved));
    const [controller] = start.controllers;
    assert.ok(controller !== undefined && controller.peakKiB >= controller.residentKiB);
    assert.ok(start.followerBytes > controller.bytes / 2);
    assert.deepEqual(
      changes.map(({ followers, scenario }) => [followers, scenario]),
      [3, 5].flatMap((followers) => scenarios.map((scenario) => [followers, scenario])),
    );
    for (const { scenario, changes: readings } of changes) {
      assert.ok(readings.length >= 2);
      for (const { halfMs, allMs, sentBytes, receivedBytes } of readings) {
        assert.ok(halfMs > 0 && allMs >= halfMs, `${scenario}: ${halfMs} and ${allMs} ms`);
        assert.ok(sentBytes > 0 && receivedBytes > 0);
        if (scenario !== 'tenants') assert.ok(sentBytes < controller.bytes / 10);
      }
    }
  });

  test('what was measured is kept when a later scenario fails, and said to be not proved', async () => {
    await using redis = await startRedis();
    const interruption = new AbortController();
    const { start, changes, failure } = await measureCluster({
      ...{ url: redis.url, services: 10, followers: 2, rounds: 1, starts: 1, scenarios },
      signal: interruption.signal,
      say: (text) => {
        if (text.includes('service:')) interruption.abort(new Error('somebody pressed a key'));
      },
    });
    assert.equal(start.controllers.length, 1);
    assert.deepEqual(
      changes.map(({ scenario, isProved }) => [scenario, isProved]),
      [
        ['endpoint', false],
        ['service', false],
      ],
    );
    assert.equal(failure, '10 Services: somebody pressed a key');
  });

  test('a follower that holds something else ends the run', async (t) => {
    await using redis = await startRedis();
    const controller = controllerOn(t, redis.url, 10);
    await controller.call('start');
    await using crew = new FollowerPool(redis.url, 'test');
    await crew.growTo(2);
    await crew.verifyTables(await controller.call('digest'));
    await assert.rejects(crew.verifyTables('another table'), /a follower does not hold what the controller decided/);
  });

  test('a controller that ends is said to have ended, not waited for', async (t) => {
    const controller = controllerOn(t, 'redis://127.0.0.1:1', 1);
    const asked = assert.rejects(controller.call('start'), /controller-process.ts has ended before it answered/);
    process.kill(controller.pid, 'SIGKILL');
    await asked;
  });
});
