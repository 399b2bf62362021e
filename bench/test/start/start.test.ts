import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { allocationsFor, EMPTY_TABLE, entriesOf, translate } from '@weir/model';
import { requireProgram, startRedis } from '@weir/tools';
import { IN_MEMORY_CLUSTER_SETTINGS } from '../../src/control/in-memory-cluster.ts';
import { compileProxy } from '../../src/processes/weir-proxy.ts';
import { measureStarts } from '../../src/start/measure-start.ts';
import { parseStartArguments } from '../../src/start/options.ts';
import { startCluster } from '../../src/start/start-cluster.ts';
import { type ProxyStartReadings, proxyStartTable, summarizeProxyStart } from '../../src/start/start-result.ts';

const node = { name: 'start-1', address: '127.93.1.1' };

describe('startCluster', () => {
  for (const servicesOnNode of [1, 12, 40]) {
    test(`places ${servicesOnNode} of 40 Services with ten endpoints each on the node`, () => {
      const cluster = startCluster({ services: 40, servicesOnNode, node });
      const { table, problems } = translate(
        { ...cluster, settings: IN_MEMORY_CLUSTER_SETTINGS },
        allocationsFor(EMPTY_TABLE),
      );
      assert.deepEqual(problems, []);
      const listeners = entriesOf(table, 'listener');
      assert.equal(listeners.length, 80);
      assert.equal(listeners.filter((each) => each.node === node.name).length, servicesOnNode);
      assert.equal(entriesOf(table, 'endpoints').flatMap(({ endpoints }) => endpoints).length, 400);
    });
  }
});

test('rejects invalid numbers of Services, and caps them at the Services of the fleet', () => {
  const parsed = parseStartArguments(['--services', '100', '--services-on-node', '200,50,300', '--rounds', '2']);
  assert.deepEqual(parsed, { kind: 'start', options: { services: 100, servicesOnNode: [50, 100], rounds: 2 } });
  assert.throws(
    () => parseStartArguments(['--services-on-node', 'all']),
    /invalid --services-on-node "all": expected a whole/,
  );
  assert.throws(() => parseStartArguments(['here']), /unexpected argument "here"/);
});

describe('proxyStartTable', () => {
  const readings: ProxyStartReadings = {
    entries: 41_000,
    servicesOnNode: 10_000,
    requestedServices: 10_000,
    starts: [1_000, 2_000, 3_000].map((servingMs) => ({ servingMs, cpuMs: 900, queuedMs: 250, peakKiB: 409_600 })),
    scrapes: [{ ms: 200, bytes: 4_800_000, waitMs: 60 }],
    restMs: 12,
  };

  test('has targets for the median start, the largest process and the wait of a node with all Services', () => {
    const [, , cells = ''] = proxyStartTable([summarizeProxyStart(readings)]);
    assert.match(
      cells,
      /\| 2000 \(1000–3000\) +\| 900 +\| 250 +\| 400 +\| ≤ 2000 ms, met \(1\.00 ×\); ≤ 400 MiB, met \(1\.00 ×\) +\|/,
    );
    assert.match(cells, /\| 200 +\| 4\.8 +\| 60 +\| 12 +\| ≤ 50 ms, missed \(1\.20 ×\) +\|/);
  });

  test('has no target of the start for a node with some of the Services', () => {
    const [, , cells = ''] = proxyStartTable([
      summarizeProxyStart({ ...readings, servicesOnNode: 200, requestedServices: 200 }),
    ]);
    assert.doesNotMatch(cells, /2000 ms/);
  });
});

test('measures every start of a proxy until it listens for all Services of its node', {
  ...requireProgram('redis'),
  timeout: 120_000,
}, async () => {
  await using redis = await startRedis();
  const progress: string[] = [];
  const { rows, failures } = await measureStarts({
    redis: redis.url,
    program: await compileProxy(),
    services: 20,
    servicesOnNode: [10],
    rounds: 2,
    signal: new AbortController().signal,
    logProgress: (text) => void progress.push(text),
  });
  assert.deepEqual(failures, []);
  assert.deepEqual(
    rows.map(({ servicesOnNode }) => servicesOnNode),
    [10],
  );
  for (const { starts, scrapes } of rows) {
    assert.equal(starts.length, 2);
    assert.ok(starts.every(({ servingMs, cpuMs }) => servingMs > 50 && cpuMs > 0));
    assert.ok(starts.every(({ queuedMs, peakKiB }) => queuedMs > 0 && peakKiB > 20_000));
    assert.equal(scrapes.length, 5);
    assert.ok(scrapes.every(({ bytes, ms }) => bytes > 1_000 && ms > 0));
  }
  assert.match(progress.at(-1) ?? '', /^10 Services on the node: serving after \d+, \d+ ms$/);
});
