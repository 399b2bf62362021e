import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Reading, type Result, reasonNotToKeep, summariesFor } from '../src/report/result.ts';
import { tableFor } from '../src/report/table.ts';

const reading = (figure: number): Reading => ({ figure, userMs: 250, systemMs: 750, count: 1000, ms: 2000 });

const kept = {
  name: 'kept connections',
  unit: 'µs of CPU per request',
  bar: 1,
  readings: { weir: [reading(10), reading(24)], haproxy: [reading(10), reading(20)] },
};

const result: Result = {
  at: '2026-03-04T05:06:07.000Z',
  commit: 'abc1234',
  modified: false,
  machine: '2 × a processor',
  versions: {},
  pairs: 2,
  seconds: 1,
  subjects: [],
  scenarios: [kept],
};

describe('a report', () => {
  test('compares each subject with HAProxy in the same round', () => {
    const [weir, haproxy] = summariesFor(kept);
    assert.equal(weir?.figure.median, 17);
    assert.equal(weir?.ratio?.median, 1.1);
    assert.equal(weir?.userShare, 0.25);
    assert.equal(haproxy?.ratio, undefined);
  });

  test('without HAProxy compares nothing', () => {
    const [weir] = summariesFor({ ...kept, readings: { weir: [reading(10)] } });
    assert.equal(weir?.ratio, undefined);
  });

  test("is a Markdown table that says whether Weir's bar is met", () => {
    const lines = tableFor(result).split('\n');
    assert.equal(lines[0], '2026-03-04, abc1234, 2 × a processor, 2 rounds of 1 s');
    const cells = (lines[4] ?? '').split('|').map((cell) => cell.trim());
    assert.deepEqual(cells, [
      '',
      ...['kept connections', 'µs of CPU per request', 'weir', '17.0', '13.5–20.5', '25 %', '1.10', '1.05–1.15'],
      '≤ 1.0, missed',
      '',
    ]);
    assert.equal(new Set(lines.slice(2).map((line) => line.length)).size, 1);
  });

  test('is kept when Weir and HAProxy ran in ten pairs or more, unprofiled', () => {
    const good = { pairs: 10, subjects: ['weir', 'haproxy'] } as const;
    assert.equal(reasonNotToKeep(good), undefined);
    assert.match(reasonNotToKeep({ ...good, pairs: 9 }) ?? '', /10 pairs/);
    assert.match(reasonNotToKeep({ ...good, subjects: ['weir', 'pipe'] }) ?? '', /haproxy/);
    assert.match(reasonNotToKeep({ ...good, profile: 'x' }) ?? '', /profiled/);
  });
});
