// The page of the metrics and what processes really expose: neither without the other.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { requireProgram } from '@weir/tools';
import { type ExposedMetric, exposedMetrics, type ProcessName } from '../src/docs/exposed-metrics.ts';
import { readPage } from '../src/docs/markdown.ts';

const PAGE = readPage('docs/metrics.md');
const ROW = /^\| `(\w+)` \| (\w+) \| ([^|]+) \|/gm;

/** What the sections of the page list. */
function listedIn(...headings: readonly string[]): ExposedMetric[] {
  const sections = headings.map((heading) => PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '');
  return [...sections.join('').matchAll(ROW)].map(([, name = '', type = '', labels = '']) => ({
    name,
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label),
  }));
}

const byName = (a: ExposedMetric, b: ExposedMetric): number => (a.name < b.name ? -1 : 1);
const isOfProcess = ({ name }: ExposedMetric): boolean => !name.startsWith('weir_');

describe('docs/metrics.md lists what is exposed, with types and labels', requireProgram('redis'), () => {
  let exposed: Readonly<Record<ProcessName, readonly ExposedMetric[]>>;
  before(async () => {
    exposed = await exposedMetrics();
  });

  for (const [program, heading] of [
    ['proxy', 'Of a proxy'],
    ['controller', 'Of a controller'],
    ['console', 'Of a console'],
  ] as const) {
    test(`by a ${program}`, () => {
      const shared = listedIn('Of every process').filter((metric) => program !== 'console' || !isOfProcess(metric));
      const listed = [...listedIn(heading), ...shared].sort(byName);
      const found = [...exposed[program]].sort(byName);
      // What has no series tells no labels.
      const labelled = found.map((metric, index) => ({ ...metric, labels: metric.labels ?? listed[index]?.labels }));
      assert.deepEqual(listed, labelled);
    });
  }

  test('and nearly all of ours tell their labels here', () => {
    const ours = Object.values(exposed)
      .flat()
      .filter((metric) => !isOfProcess(metric));
    const silent = ours.filter(({ labels }) => labels === undefined).map(({ name }) => name);
    assert.deepEqual([...new Set(silent)].sort(), [
      'weir_connect_local_failures_total',
      'weir_controller_loop_duration_seconds',
      'weir_metrics_dropped_total',
    ]);
  });
});

test('dashboards and alerts of the chart ask for metrics that are listed', () => {
  const chart = fileURLToPath(new URL('../../charts/weir/', import.meta.url));
  const files = globSync(['dashboards/*.json', 'templates/monitoring/*.yaml'], { cwd: chart });
  const texts = files.map((file) => readFileSync(`${chart}${file}`, 'utf8')).join('\n');
  const asked = new Set([...texts.matchAll(/\bweir_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, '')));
  assert.ok(asked.size > 15, `only ${asked.size} metrics were found`);
  const listed = new Set([...PAGE.matchAll(ROW)].map(([, name]) => name));
  assert.deepEqual(
    [...asked].filter((name) => !listed.has(name)),
    [],
  );
});
