// Tests that docs/metrics.md lists exactly the metrics that the processes expose.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { requireProgram } from '@weir/tools';
import { type ExposedMetric, exposedMetrics, type ProcessName } from '../src/docs/exposed-metrics.ts';
import { readPage } from '../src/docs/markdown.ts';

const PAGE = readPage('docs/metrics.md');
const ROW = /^\| `(\w+)` \| (\w+) \| ([^|]+) \|/gm;

/** Returns the metrics in the tables below these headings of the page. */
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

describe('docs/metrics.md lists the exposed metrics with types and labels', requireProgram('redis'), () => {
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
      // Accepts the page's labels for a metric without series, because such a metric exposes no labels.
      const labelled = found.map((metric, index) => ({ ...metric, labels: metric.labels ?? listed[index]?.labels }));
      assert.deepEqual(listed, labelled);
    });
  }

  // The controller in this test has no API server and so never leads.
  test('nearly all metrics of Weir expose their labels in this test', () => {
    const weirMetrics = Object.values(exposed)
      .flat()
      .filter((metric) => !isOfProcess(metric));
    const unlabelled = weirMetrics.filter(({ labels }) => labels === undefined).map(({ name }) => name);
    assert.deepEqual([...new Set(unlabelled)].sort(), [
      'weir_access_log_dropped_total',
      'weir_connect_local_failures_total',
      'weir_controller_loop_duration_seconds',
      'weir_controller_nodes',
      'weir_controller_problems',
      'weir_metrics_dropped_total',
      'weir_rule_acting',
      // The controller sends its first calls to Redis when it leads.
      'weir_store_call_duration_seconds',
      'weir_tenant_limit',
      'weir_tenant_share',
      'weir_tenant_used',
    ]);
  });
});

test('dashboards and alerts of the chart use listed metrics only', () => {
  const chart = fileURLToPath(new URL('../../charts/weir/', import.meta.url));
  const files = globSync(['dashboards/*.json', 'templates/monitoring/*.yaml'], { cwd: chart });
  const texts = files.map((file) => readFileSync(`${chart}${file}`, 'utf8')).join('\n');
  const used = new Set([...texts.matchAll(/\bweir_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, '')));
  assert.ok(used.size > 15, `only ${used.size} metrics were found`);
  const listed = new Set([...PAGE.matchAll(ROW)].map(([, name]) => name));
  assert.deepEqual(
    [...used].filter((name) => !listed.has(name)),
    [],
  );
});
