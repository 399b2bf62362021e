import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { requireProgram } from '@weir/tools';
import { INSTALLATIONS, renderManifests, WEIR_CHART } from '../../src/chart/helm.ts';

// Tests that dashboards and alerts use only metrics that the processes expose.
const root = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

/** The metric names in single quotes in the sources, because a metric's declaration has its name in single quotes. */
const metricsInSources = new Set(
  globSync('packages/*/src/**/*.ts', { cwd: fileURLToPath(root) }).flatMap((file) =>
    [...read(file).matchAll(/'(weir_[a-z_]+)'/g)].map(([, name]) => name ?? ''),
  ),
);

const metricsIn = (text: string): string[] =>
  (text.match(/\bweir_[a-z_]+/g) ?? []).map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));

describe('every metric exists', () => {
  for (const file of globSync('{dashboards,templates/monitoring}/*.{json,yaml}', { cwd: fileURLToPath(WEIR_CHART) })) {
    test(`in ${file}`, () => {
      const names = metricsIn(readFileSync(new URL(file, WEIR_CHART), 'utf8'));
      assert.deepEqual(
        [...new Set(names)].filter((name) => !metricsInSources.has(name)),
        [],
      );
    });
  }
});

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

describe('each panel has an id and a place of its own', () => {
  for (const file of globSync('dashboards/*.json', { cwd: fileURLToPath(WEIR_CHART) })) {
    test(`in ${file}`, () => {
      const { panels } = JSON.parse(readFileSync(new URL(file, WEIR_CHART), 'utf8')) as { panels: readonly Panel[] };
      assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
      const titleByCell = new Map<string, string>();
      for (const { title, gridPos } of panels) {
        assert.ok(gridPos.x + gridPos.w <= 24, title);
        for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
          for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
            assert.equal(titleByCell.get(`${x} ${y}`), undefined, title);
            titleByCell.set(`${x} ${y}`, title);
          }
        }
      }
    });
  }
});

interface Rule {
  readonly alert?: string;
  readonly labels?: { readonly severity?: string };
  readonly annotations?: { readonly summary?: string; readonly description?: string };
}

describe('the alerts of the chart', requireProgram('helm'), () => {
  const rules = async (): Promise<readonly Rule[]> => {
    const installation = INSTALLATIONS.find(({ name }) => name === 'everything');
    assert.ok(installation);
    const manifests = await renderManifests(installation);
    const found = manifests
      .filter(({ kind }) => kind === 'PrometheusRule')
      .flatMap(({ spec }) =>
        (spec as { groups: readonly { rules: readonly Rule[] }[] }).groups.flatMap((each) => each.rules),
      );
    assert.ok(found.length > 0);
    return found;
  };

  test('have a severity and a summary', async () => {
    for (const { alert = '', labels, annotations } of await rules()) {
      assert.match(labels?.severity ?? '', /^(critical|warning|info)$/, alert);
      assert.ok(annotations?.summary, alert);
    }
  });
});
