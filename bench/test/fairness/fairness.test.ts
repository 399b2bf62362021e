import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fairnessTable } from '../../src/fairness/fairness-result.ts';
import type { Flood } from '../../src/fairness/flood-latency.ts';
import { measureVictimLatency } from '../../src/fairness/flood-latency.ts';

const row = (subject: string, through: number) => {
  const figures = { quiet: [100, 100, 100], beside: [150, 160, 140], through: [through, through, through] };
  return { subject, flood: 'streams', p50: figures, p99: figures };
};

const ports = { answers: 1, bulk: 1, echo: 1, datagrams: 1 };

describe('the fairness of a worker', () => {
  test('is how many times its quiet latency a tenant has; what the machine does is told apart', () => {
    const cells = fairnessTable([row('weir, limited', 210)])[2]
      ?.split('|')
      .map((cell) => cell.trim());
    assert.deepEqual(cells?.slice(1, -1), [
      ...['streams', 'weir, limited', '100', '150', '210', '1.50 (1.45–1.55)', '1.40 (1.36–1.45)', '2.10 (2.10–2.10)'],
      '≤ 2, missed',
    ]);
  });

  test('has a bar for Weir with limits alone', () => {
    const [, , fair, free, peer] = fairnessTable([row('weir, limited', 199), row('weir', 250), row('haproxy', 500)]);
    assert.match(fair ?? '', /≤ 2, met/);
    for (const other of [free, peer]) assert.doesNotMatch(other ?? '', /met|missed/);
  });

  test('is measured while the flood runs, and a flood that fails ends the run', async () => {
    const asked: unknown[] = [];
    const flood: Flood = {
      title: 'none',
      run: (...args) => {
        asked.push(args);
        return Promise.reject(new Error('the flood failed'));
      },
    };
    await assert.rejects(measureVictimLatency({ flood, flooded: ports, seconds: 1 }, ports), /the flood failed/);
    assert.equal(asked.length, 1);
  });
});
