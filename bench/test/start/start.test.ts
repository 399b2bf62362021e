import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { allocationsFor, EMPTY_TABLE, entriesOf, translate } from '@weir/model';
import { requireProgram, startRedis } from '@weir/tools';
import { IN_MEMORY_CLUSTER_SETTINGS } from '../../src/control/in-memory-cluster.ts';
import { compileProxy } from '../../src/processes/weir-proxy.ts';
import { measureStarts } from '../../src/start/measure-start.ts';
import { parseStartArguments } from '../../src/start/options.ts';
import { startCluster } from '../../src/start/start-cluster.ts';
import type { ProxyStartRow } from '../../src/start/start-result.ts';
import { proxyStartTable } from '../../src/start/start-result.ts';

const node = { name: 'start-1', address: '127.93.1.1' };

describe('the cluster of a start', () => {
  for (const here of [1, 12, 40]) {
    test(`of 40 Services ${here} are on the node, all are served, and each has ten endpoints`, () => {
      const cluster = startCluster({ services: 40, here, node });
      const { table, problems } = translate(
        { ...cluster, settings: IN_MEMORY_CLUSTER_SETTINGS },
        allocationsFor(EMPTY_TABLE),
      );
      assert.deepEqual(problems, []);
      const listeners = entriesOf(table, 'listener');
      assert.equal(listeners.length, 80);
      assert.equal(listeners.filter((each) => each.node === node.name).length, here);
      assert.equal(entriesOf(table, 'endpoints').flatMap(({ endpoints }) => endpoints).length, 400);
    });
  }
});

test('a start is asked for in whole numbers, and no node has more Services than there are', () => {
  const parsed = parseStartArguments(['--services', '100', '--here', '200,50,300', '--rounds', '2']);
  assert.deepEqual(parsed, { kind: 'start', options: { services: 100, here: [50, 100], rounds: 2 } });
  assert.throws(() => parseStartArguments(['--here', 'all']), /--here is "all"; use a whole number from 1 to 10000/);
  assert.throws(() => parseStartArguments(['here']), /"here" is too much/);
});

describe('the table of a start', () => {
  const row: ProxyStartRow = {
    entries: 41_000,
    here: 10_000,
    wanted: 10_000,
    starts: [1_000, 2_000, 3_000].map((servingMs) => ({ servingMs, cpuMs: 900, queuedMs: 250, peakKiB: 409_600 })),
    scrapes: [{ ms: 200, bytes: 4_800_000, waitMs: 60 }],
    restMs: 12,
  };

  test('judges the median and the largest process of those that serve all, and the wait of each', () => {
    const [, , cells = ''] = proxyStartTable([row]);
    assert.match(
      cells,
      /\| 2000 \(1000–3000\) +\| 900 +\| 250 +\| 400 +\| ≤ 2000 ms, met \(1\.00 ×\); ≤ 400 MiB, met \(1\.00 ×\) +\|/,
    );
    assert.match(cells, /\| 200 +\| 4\.8 +\| 60 +\| 12 +\| ≤ 50 ms, missed \(1\.20 ×\) +\|/);
  });

  test('a share of them has no bar of its start', () => {
    const [, , cells = ''] = proxyStartTable([{ ...row, here: 200, wanted: 200 }]);
    assert.doesNotMatch(cells, /2000 ms/);
  });
});

test('a proxy that starts is measured until it listens for all of its Services, as often as asked for', {
  ...requireProgram('redis'),
  timeout: 120_000,
}, async () => {
  await using redis = await startRedis();
  const said: string[] = [];
  const { rows, failures } = await measureStarts({
    redis: redis.url,
    program: await compileProxy(),
    services: 20,
    here: [10],
    rounds: 2,
    signal: new AbortController().signal,
    say: (text) => void said.push(text),
  });
  assert.deepEqual(failures, []);
  assert.deepEqual(
    rows.map(({ here }) => here),
    [10],
  );
  for (const { starts, scrapes } of rows) {
    assert.equal(starts.length, 2);
    assert.ok(starts.every(({ servingMs, cpuMs }) => servingMs > 50 && cpuMs > 0));
    assert.ok(starts.every(({ queuedMs, peakKiB }) => queuedMs > 0 && peakKiB > 20_000));
    assert.equal(scrapes.length, 5);
    assert.ok(scrapes.every(({ bytes, ms }) => bytes > 1_000 && ms > 0));
  }
  assert.match(said.at(-1) ?? '', /^10 Services here: served after \d+, \d+ ms$/);
});
