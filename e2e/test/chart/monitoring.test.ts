// What is drawn and what is alerted of is what the processes measure.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WEIR_CHART } from '../../src/chart/chart-folder.ts';

const root = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');
/** In quotes: as a metric is named where it is made. */
const metricsInSources = new Set(
  globSync('packages/*/src/**/*.ts', { cwd: fileURLToPath(root) }).flatMap((file) =>
    [...read(file).matchAll(/'(weir_[a-z_]+)'/g)].map(([, name]) => name ?? ''),
  ),
);
const metricsIn = (text: string): string[] =>
  (text.match(/\bweir_[a-z_]+/g) ?? []).map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));

describe('each metric exists', () => {
  for (const file of globSync('{dashboards,templates/monitoring}/*.{json,yaml}', { cwd: fileURLToPath(WEIR_CHART) })) {
    test(`of ${file}`, () => {
      const names = metricsIn(readFileSync(new URL(file, WEIR_CHART), 'utf8'));
      assert.deepEqual(
        [...new Set(names)].filter((name) => !metricsInSources.has(name)),
        [],
      );
    });
  }
});
