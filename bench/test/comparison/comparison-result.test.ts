import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type ComparisonResult,
  formatComparison,
  type Reading,
  type ScenarioReadings,
  summarizeScenario,
} from '../../src/comparison/comparison-result.ts';
import { formatResultFile, reasonToDiscardComparison } from '../../src/report/save-result.ts';

const reading = (figure: number): Reading => ({ figure, userMs: 250, systemMs: 750 });

const keptConnections: ScenarioReadings = {
  name: 'kept connections',
  unit: 'µs of CPU per request',
  targets: { haproxy: 1, envoy: 0.85 },
  readings: {
    weir: [reading(10), reading(24)],
    haproxy: [reading(10), reading(20)],
    envoy: [reading(20), reading(30)],
  },
};

const idleConnections: ScenarioReadings = {
  name: 'idle connections',
  unit: 'KiB each',
  targets: {},
  maxFigure: 16,
  readings: { weir: [reading(2), reading(2)] },
};

const limits: ScenarioReadings = {
  name: 'limits on',
  unit: 'µs',
  judgedSubject: 'weir-limits',
  targets: { weir: 1.05 },
  readings: { weir: [reading(10), reading(10)], 'weir-limits': [reading(11), reading(11)] },
};

const resultOf = (...scenarios: ScenarioReadings[]): ComparisonResult => ({
  at: '2026-03-04T05:06:07.000Z',
  commit: 'abc1234',
  modified: false,
  machine: '2 × a processor',
  versions: { envoy: '1.2.3' },
  load: [0.25, 1],
  stolen: 0.015,
  rounds: 2,
  seconds: 1,
  subjects: [],
  scenarios: scenarios.map(summarizeScenario),
  leftOut: [],
});

describe('a result of l4', () => {
  test('compares each subject with HAProxy and Envoy in the same round', () => {
    const { weir, haproxy, envoy } = summarizeScenario(keptConnections).subjects;
    assert.equal(weir?.figure.median, 17);
    assert.equal(weir?.ratios.haproxy?.median, 1.1);
    assert.equal(weir?.ratios.envoy?.median, 0.65);
    assert.equal(weir?.userShare, 0.25);
    assert.deepEqual(Object.keys(haproxy?.ratios ?? {}), ['envoy']);
    assert.deepEqual(Object.keys(envoy?.ratios ?? {}), ['haproxy']);
  });

  test('has no ratios and no verdicts without other subjects', () => {
    const alone = { ...keptConnections, readings: { weir: [reading(10)] } };
    assert.deepEqual(summarizeScenario(alone).subjects.weir?.ratios, {});
    assert.equal(cellsOf(resultOf(alone), 'weir').at(-1), '≤ 1.0 × HAProxy; ≤ 0.85 × Envoy');
  });

  test('is a Markdown table that shows whether Weir meets its targets', () => {
    const result = resultOf(keptConnections);
    const lines = formatComparison(result).split('\n');
    assert.equal(
      lines[0],
      '2026-03-04, abc1234, 2 × a processor, envoy 1.2.3, 2 rounds of 1 s, load 0.3 before, 1.0 after, CPU steal 1.5 %',
    );
    assert.deepEqual(cellsOf(result, 'weir'), [
      ...['kept connections', 'µs of CPU per request', 'weir', '17.0', '13.5–20.5', '25 %'],
      ...['1.10 (1.05–1.15)', '0.65 (0.57–0.73)', '≤ 1.0 × HAProxy, missed; ≤ 0.85 × Envoy, met'],
    ]);
    assert.equal(new Set(lines.slice(2).map((line) => line.length)).size, 1);
  });

  test('compares an absolute target with the figure', () => {
    assert.equal(cellsOf(resultOf(idleConnections), 'weir').at(-1), '≤ 16, met');
  });

  test('compares a variant of Weir with Weir', () => {
    const result = resultOf(limits);
    assert.deepEqual(cellsOf(result, 'weir-limits').slice(-2), ['1.10 (1.10–1.10)', '≤ 1.05 × Weir, missed']);
    assert.deepEqual(cellsOf(result, 'weir').slice(-2), ['', '']);
  });

  test('lists the configurations of subjects, and why subjects are left out', () => {
    assert.match(
      formatComparison({
        ...resultOf(keptConnections),
        subjects: [{ name: 'weir', description: 'one worker' }],
        leftOut: ['envoy: no wheel'],
      }),
      /\n\n- weir: one worker\n- left out: envoy: no wheel$/,
    );
  });

  test('is kept after ten rounds of all scenarios with Weir and HAProxy, without profiles', () => {
    const complete = { rounds: 10, subjects: ['weir', 'haproxy'] } as const;
    assert.equal(reasonToDiscardComparison(complete), undefined);
    assert.match(reasonToDiscardComparison({ ...complete, rounds: 9 }) ?? '', /10 rounds/);
    assert.match(reasonToDiscardComparison({ ...complete, subjects: ['weir', 'pipe'] }) ?? '', /haproxy/);
    assert.match(reasonToDiscardComparison({ ...complete, scenarios: ['udp'] }) ?? '', /all scenarios/);
    assert.match(reasonToDiscardComparison({ ...complete, profileDirectory: 'x' }) ?? '', /profiling/);
  });
});

describe('a result file', () => {
  test('has summaries instead of readings', () => {
    const manyReadings = Array.from({ length: 50 }, (_, index) => reading(index + 0.123456789));
    const result = resultOf({ ...keptConnections, readings: { weir: manyReadings, haproxy: manyReadings } });
    const text = formatResultFile({ l4: result });
    assert.deepEqual(JSON.parse(text), {
      l4: JSON.parse(JSON.stringify(result, (_, value) => (value % 1 ? Number(value.toPrecision(6)) : value))),
    });
    assert.ok(text.split('\n').length < 30, text);
    assert.equal(result.scenarios[0]?.subjects.weir?.figure.count, 50);
    assert.doesNotMatch(text, /readings/);
  });
});

function cellsOf(result: ComparisonResult, subject: string): string[] {
  const rows = formatComparison(result)
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()));
  return (rows.find((cells) => cells[3] === subject) ?? []).slice(1, -1);
}
