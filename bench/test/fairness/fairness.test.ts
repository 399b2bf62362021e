import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fairnessTable, LIMITED_WEIR, summarizeFairness } from '../../src/fairness/fairness-result.ts';
import type { Flood } from '../../src/fairness/flood-latency.ts';
import { measureVictimLatency } from '../../src/fairness/flood-latency.ts';

const row = (subject: string, sameProcessP99: number) => {
  const readings = (...values: number[]) => values.map((value) => ({ p50: value, p99: value }));
  return summarizeFairness({
    subject,
    flood: 'streams',
    readings: {
      idle: readings(100, 100, 100),
      separateProcess: readings(150, 160, 140),
      sameProcess: readings(sameProcessP99, sameProcessP99, sameProcessP99),
    },
  });
};

const ports = { http: 1, stream: 1, echo: 1, datagrams: 1 };

describe('fairness', () => {
  test('compares latencies during floods of both processes with the latency without a flood', () => {
    const cells = fairnessTable([row(LIMITED_WEIR, 210)])[2]
      ?.split('|')
      .map((cell) => cell.trim());
    assert.deepEqual(cells?.slice(1, -1), [
      ...['streams', 'weir, limited', '100', '150', '210', '1.50 (1.45–1.55)', '1.40 (1.36–1.45)', '2.10 (2.10–2.10)'],
      '≤ 2, missed',
    ]);
  });

  test('has a target for Weir with limits only', () => {
    const [, , limited, unlimited, haproxy] = fairnessTable([
      row('weir, limited', 199),
      row('weir', 250),
      row('haproxy', 500),
    ]);
    assert.match(limited ?? '', /≤ 2, met/);
    for (const other of [unlimited, haproxy]) assert.doesNotMatch(other ?? '', /met|missed/);
  });

  test('is measured during the flood, and fails if the flood fails', async () => {
    const calls: unknown[] = [];
    const flood: Flood = {
      title: 'none',
      run: (...args) => {
        calls.push(args);
        return Promise.reject(new Error('the flood failed'));
      },
    };
    await assert.rejects(measureVictimLatency({ flood, flooded: ports, seconds: 1 }, ports), /the flood failed/);
    assert.equal(calls.length, 1);
  });
});
