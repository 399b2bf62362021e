import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type L4Reading, type L4Result, l4Table, summariesFor } from '../../src/l4/l4-result.ts';
import { reasonToDiscard } from '../../src/report/save-result.ts';

const reading = (figure: number): L4Reading => ({ figure, userMs: 250, systemMs: 750, count: 1000, ms: 2000 });

const kept = {
  name: 'kept connections',
  unit: 'µs of CPU per request',
  bar: 1,
  bars: { haproxy: 1, envoy: 0.85 },
  readings: {
    weir: [reading(10), reading(24)],
    haproxy: [reading(10), reading(20)],
    envoy: [reading(20), reading(30)],
  },
};

const idle = {
  name: 'idle connections',
  unit: 'KiB each',
  bars: {},
  most: 16,
  readings: { weir: [reading(2), reading(2)] },
};

const variant = {
  name: 'limits on',
  unit: 'µs',
  judged: 'weir-limits',
  bars: { weir: 1.05 },
  readings: { weir: [reading(10), reading(10)], 'weir-limits': [reading(11), reading(11)] },
} as const;

const result: L4Result = {
  at: '2026-03-04T05:06:07.000Z',
  commit: 'abc1234',
  modified: false,
  machine: '2 × a processor',
  versions: {},
  pairs: 2,
  seconds: 1,
  subjects: [],
  scenarios: [kept],
  leftOut: [],
};

describe('a report', () => {
  test('compares each subject with HAProxy and Envoy in the same round, and with no other', () => {
    const [weir, haproxy, envoy] = summariesFor(kept);
    assert.equal(weir?.figure.median, 17);
    assert.equal(weir?.ratios.haproxy?.median, 1.1);
    assert.equal(weir?.ratios.envoy?.median, 0.65);
    assert.equal(weir?.userShare, 0.25);
    assert.deepEqual(Object.keys(haproxy?.ratios ?? {}), ['envoy']);
    assert.deepEqual(Object.keys(envoy?.ratios ?? {}), ['haproxy']);
  });

  test('without peers compares nothing, and then judges nothing', () => {
    const alone = { ...kept, readings: { weir: [reading(10)] } };
    assert.deepEqual(summariesFor(alone)[0]?.ratios, {});
    assert.equal(cellsOf({ ...result, scenarios: [alone] }, 'weir').at(-1), '≤ 1.0 × HAProxy; ≤ 0.85 × Envoy');
  });

  test("is a Markdown table that says whether each of Weir's bars is met", () => {
    const lines = l4Table(result).split('\n');
    assert.equal(lines[0], '2026-03-04, abc1234, 2 × a processor, 2 rounds of 1 s');
    assert.deepEqual(cellsOf(result, 'weir'), [
      ...['kept connections', 'µs of CPU per request', 'weir', '17.0', '13.5–20.5', '25 %'],
      ...['1.10 (1.05–1.15)', '0.65 (0.57–0.73)', '≤ 1.0 × HAProxy, missed; ≤ 0.85 × Envoy, met'],
    ]);
    assert.equal(new Set(lines.slice(2).map((line) => line.length)).size, 1);
  });

  test('judges a bar that is no ratio by the figure', () => {
    assert.equal(cellsOf({ ...result, scenarios: [idle] }, 'weir').at(-1), '≤ 16, met');
  });

  test('judges Weir set up in another way beside Weir', () => {
    const both = { ...result, scenarios: [variant] };
    assert.deepEqual(cellsOf(both, 'weir-limits').slice(-2), ['1.10 (1.10–1.10)', '≤ 1.05 × Weir, missed']);
    assert.deepEqual(cellsOf(both, 'weir').slice(-2), ['', '']);
  });

  test('says who took part and how, and who was left out and why', () => {
    assert.match(
      l4Table({
        ...result,
        subjects: [{ name: 'weir', description: 'one worker' }],
        leftOut: ['envoy, since it is not there'],
      }),
      /\n\n- weir: one worker\n- left out: envoy, since it is not there$/,
    );
  });

  test('is kept when Weir and HAProxy ran in ten pairs or more of every scenario, unprofiled', () => {
    const good = { pairs: 10, subjects: ['weir', 'haproxy'] } as const;
    assert.equal(reasonToDiscard(good), undefined);
    assert.match(reasonToDiscard({ ...good, pairs: 9 }) ?? '', /10 pairs/);
    assert.match(reasonToDiscard({ ...good, subjects: ['weir', 'pipe'] }) ?? '', /haproxy/);
    assert.match(reasonToDiscard({ ...good, only: ['udp'] }) ?? '', /all scenarios/);
    assert.match(reasonToDiscard({ ...good, profile: 'x' }) ?? '', /profiled/);
  });
});

function cellsOf(of: L4Result, subject: string): string[] {
  const rows = l4Table(of)
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()));
  return (rows.find((cells) => cells[3] === subject) ?? []).slice(1, -1);
}
