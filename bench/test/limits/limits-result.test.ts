import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { limitsChart } from '../../src/limits/limits-chart.ts';
import { limitsRows, limitsTable } from '../../src/limits/limits-result.ts';
import { hasFailoverAt, LIMIT, offeredAt, PHASES, phaseStart, TOTAL_SECONDS } from '../../src/limits/phases.ts';

const TENTHS = TOTAL_SECONDS * 10;

/** Returns counts by tenth of a second, as parts of the limit per second. */
function counts(partAt: (second: number) => number): number[] {
  return Array.from({ length: TENTHS }, (_, tenth) => (LIMIT / 10) * partAt(tenth / 10));
}

describe('the result of the benchmark limits', () => {
  test('has the error over 10 s and the highest second of each phase', () => {
    const moved = phaseStart('moved');
    const admitted = counts((second) => (second >= moved && second < moved + 2 ? 0.5 : 1));
    const rows = limitsRows('weir', { offered: counts(() => 1.5), admitted });
    const row = rows.find(({ phase }) => phase === 'moved') ?? assert.fail();
    assert.deepEqual(row, {
      phase: 'moved',
      subject: 'weir',
      offered: 1.5,
      lowest10s: 0.9,
      highest10s: 1,
      highestSecond: 1,
      reachedAfterSeconds: 1.9,
    });
    assert.equal(rows.length, PHASES.length);
    assert.match(limitsTable(rows).join('\n'), /\| moved +\| weir +\| 150 % +\| 90 % +\| 100 % +\| 100 % +\| 1\.9 s/);
  });

  test('has the time from the kill until the other proxies use the share', () => {
    const killed = phaseStart('killed');
    const admitted = counts((second) => (second >= killed + 2 && second < killed + 6 ? 2 / 3 : 1));
    const row = limitsRows('weir', { offered: counts(() => 1.5), admitted }).find(({ phase }) => phase === 'killed');
    assert.equal(row?.reachedAfterSeconds, 3.9);
  });

  test('says that a subject never admitted 95 % of the limit', () => {
    const [row] = limitsRows('envoy', { offered: counts(() => 1.5), admitted: counts(() => 0.4) });
    assert.equal(row?.reachedAfterSeconds, null);
  });

  test('is drawn as one line for each subject', () => {
    const chart = limitsChart([
      { name: 'weir', admitted: counts(() => 1) },
      { name: 'haproxy', admitted: counts(() => 0.5) },
    ]);
    assert.equal(chart.match(/<polyline /g)?.length, 2);
    assert.ok(!chart.includes('NaN') && chart.endsWith('</svg>\n'));
  });
});

test('the load follows the phases, and starts with the first phase', () => {
  assert.deepEqual(offeredAt(-1), PHASES[0]?.offered);
  assert.deepEqual(offeredAt(phaseStart('moved')), [0, 2 * LIMIT, 0]);
  assert.deepEqual(offeredAt(TOTAL_SECONDS), [0, 0, 0]);
  assert.deepEqual([phaseStart('killed'), phaseStart('killed, no failover'), TOTAL_SECONDS].map(hasFailoverAt), [
    true,
    false,
    false,
  ]);
});
