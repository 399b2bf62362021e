import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { SourceSnapshot } from '@weir/controller';
import { allocationsFor, EMPTY_TABLE, type Translation, translate } from '@weir/model';
import { requireProgram, startRedis } from '@weir/tools';
import {
  type ChangeReadings,
  type ChangeRow,
  type ControllerStartRow,
  controlChangeTable,
  controllerStartTable,
  summarizeChanges,
  summarizeControllerStart,
} from '../../src/control/control-result.ts';
import type { ControllerRpc } from '../../src/control/controller-process.ts';
import { editsFor } from '../../src/control/edits.ts';
import { FollowerPool } from '../../src/control/follower-pool.ts';
import { IN_MEMORY_CLUSTER_SETTINGS, inMemoryCluster } from '../../src/control/in-memory-cluster.ts';
import { type ClusterMeasurementOptions, measureCluster } from '../../src/control/measure-cluster.ts';
import type { ChangeScenario } from '../../src/control/options.ts';
import { tableDigest } from '../../src/control/table-digest.ts';
import { RpcProcess } from '../../src/processes/rpc.ts';

const scenarios: readonly ChangeScenario[] = ['endpoint', 'service', 'rollout', 'tenants'];
const translated = (cluster: SourceSnapshot): Translation =>
  translate({ ...cluster, settings: IN_MEMORY_CLUSTER_SETTINGS }, allocationsFor(EMPTY_TABLE));

describe('inMemoryCluster', () => {
  test('gives each Service two nodes and ten endpoints', () => {
    const { table, problems } = translated(inMemoryCluster(30));
    assert.deepEqual(problems, []);
    const entries = [...table.entries.values()];
    assert.equal(entries.filter(({ kind }) => kind === 'listener').length, 60);
    const endpoints = entries.filter((entry) => entry.kind === 'endpoints');
    assert.equal(endpoints.flatMap((entry) => entry.endpoints).length, 300);
  });

  test('spreads ten thousand Services over a thousand namespaces, sorted as in a source', () => {
    const { namespaces, services } = inMemoryCluster(10_000);
    assert.equal(namespaces.length, 1_000);
    assert.equal(new Set(services.map(({ namespace }) => namespace)).size, 1_000);
    const keys = services.map(({ namespace, name }) => `${namespace} ${name}`);
    assert.deepEqual(keys, [...keys].sort());
  });

  for (const scenario of scenarios) {
    test(`changes the table without a problem in every round of "${scenario}"`, () => {
      let cluster = inMemoryCluster(4);
      const digest = (): string => tableDigest(translated(cluster).table);
      // the number of rounds is twice the number of Services, so that each Service changes twice
      for (let round = 0; round < 8; round++) {
        for (const edit of editsFor('endpoint', round, cluster).slice(round % 2)) cluster = edit(cluster);
        for (const edit of editsFor(scenario, round, cluster)) {
          const before = digest();
          cluster = edit(cluster);
          assert.notEqual(digest(), before, `round ${round}`);
          assert.deepEqual(translated(cluster).problems, []);
        }
      }
    });
  }

  test('changes one Service of each of a hundred tenants', () => {
    const before = inMemoryCluster(300);
    const [edit] = editsFor('tenants', 0, before);
    const after = edit?.(before) ?? before;
    const changed = after.slices.filter((slice, index) => slice !== before.slices[index]);
    assert.equal(changed.length, 100);
    assert.equal(new Set(changed.map(({ namespace }) => namespace)).size, 100);
  });
});

describe('control tables', () => {
  const started = { revision: 1, entries: 5, bytes: 2048, objectsKiB: 1024, residentKiB: 2048 };
  const start = (services: number, ms: number, peakMiB: number): ControllerStartRow =>
    summarizeControllerStart({
      services,
      controllers: [{ ...started, ms, peakKiB: peakMiB * 1024 }],
      followerMs: 7,
      followerBytes: 1024,
    });
  const change = (readings: Partial<ChangeReadings>, ...times: number[]): ChangeRow =>
    summarizeChanges({
      services: 10_000,
      followers: 3,
      scenario: 'endpoint',
      changes: times.map((allMs) => ({ allMs, halfMs: 1, sentBytes: 1024, receivedBytes: 512 })),
      isVerified: true,
      ...readings,
    });

  test('show the targets of a start with 10,000 Services, for the slowest and largest controller', () => {
    assert.match(controllerStartTable([start(10_000, 5_000, 600)]).join('\n'), /≤ 5000 ms, met; ≤ 600 MiB, met/);
    assert.match(controllerStartTable([start(10_000, 5_001, 601)]).join('\n'), /≤ 5000 ms, missed; ≤ 600 MiB, missed/);
    assert.doesNotMatch(controllerStartTable([start(1_000, 9_000, 900)]).join('\n'), /≤/);
  });

  test('mark changes whose followers were not verified', () => {
    assert.match(controlChangeTable([change({ isVerified: false }, 10)]).join('\n'), /endpoint \(not verified\)/);
    assert.doesNotMatch(controlChangeTable([change({}, 10)]).join('\n'), /not verified/);
  });

  test('show the target of the 99th percentile with three followers only', () => {
    assert.match(controlChangeTable([change({}, 10, 59)]).join('\n'), /≤ 60 ms, met/);
    assert.match(controlChangeTable([change({}, 10, 70)]).join('\n'), /≤ 60 ms, missed/);
    assert.match(controlChangeTable([change({ services: 10 }, 10, 31)]).join('\n'), /≤ 30 ms, missed/);
    assert.doesNotMatch(controlChangeTable([change({ followers: 100 }, 10, 70)]).join('\n'), /≤/);
    assert.doesNotMatch(controlChangeTable([change({ scenario: 'tenants' }, 10, 70)]).join('\n'), /≤/);
  });
});

describe('measureCluster', requireProgram('redis-server'), () => {
  const controllerOn = (context: TestContext, url: string, services: number): RpcProcess<ControllerRpc> => {
    const program = new URL('../../src/control/controller-process.ts', import.meta.url);
    const controller = new RpcProcess<ControllerRpc>(program, [url, 'test', services]);
    context.after(() => controller[Symbol.asyncDispose]());
    return controller;
  };

  test('measures every change at every follower, and a change costs fewer bytes than the table', async (t) => {
    await using redis = await startRedis();
    const options: ClusterMeasurementOptions = {
      ...{ url: redis.url, services: 40, followers: 5, rounds: 2, starts: 1, scenarios },
      ...{ signal: t.signal, logProgress: () => {} },
    };
    const { start, changes, failure } = await measureCluster(options);
    assert.equal(failure, undefined);
    assert.ok(changes.every(({ isVerified }) => isVerified));
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

  test('keeps readings before a failed scenario as not verified', async () => {
    await using redis = await startRedis();
    const interruption = new AbortController();
    const { start, changes, failure } = await measureCluster({
      ...{ url: redis.url, services: 10, followers: 2, rounds: 1, starts: 1, scenarios },
      signal: interruption.signal,
      logProgress: (text) => {
        if (text.includes('service:')) interruption.abort(new Error('somebody pressed a key'));
      },
    });
    assert.equal(start.controllers.length, 1);
    assert.deepEqual(
      changes.map(({ scenario, isVerified }) => [scenario, isVerified]),
      [
        ['endpoint', false],
        ['service', false],
      ],
    );
    assert.equal(failure, '10 Services: somebody pressed a key');
  });

  test('rejects a follower with a different table', async (t) => {
    await using redis = await startRedis();
    const controller = controllerOn(t, redis.url, 10);
    await controller.call('start');
    await using followers = new FollowerPool(redis.url, 'test');
    await followers.growTo(2);
    await followers.verifyTables(await controller.call('digest'));
    await assert.rejects(
      followers.verifyTables('another table'),
      /the table of a follower differs from the table of the controller/,
    );
  });

  test('rejects a call when the controller has ended', async (t) => {
    const controller = controllerOn(t, 'redis://127.0.0.1:1', 1);
    const call = assert.rejects(controller.call('start'), /controller-process.ts ended before it responded/);
    process.kill(controller.pid, 'SIGKILL');
    await call;
  });
});
