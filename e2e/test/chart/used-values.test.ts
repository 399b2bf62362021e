import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { parseDocument } from 'yaml';
import {
  chartFile,
  INSTALLATIONS,
  type Installation,
  renderChart,
  valuesFile,
  WEIR_CHART,
} from '../../src/chart/helm.ts';
import { type ChartValue, parseValues } from '../../src/chart/values.ts';

const leaves = (values: readonly ChartValue[]): readonly ChartValue[] =>
  values.flatMap((each) => (each.children === undefined ? [each] : leaves(each.children)));

/**
 * Returns a value of the right type whose `mark` can be found in the rendering; undefined for booleans and for values with fixed choices.
 */
function markedValue(
  { choices, default: value }: ChartValue,
  index: number,
): { value: unknown; mark: string } | undefined {
  const mark = typeof value === 'number' ? String(20_000 + index) : `mark${index}x`;
  if (choices.length > 0 || typeof value === 'boolean') return undefined;
  if (typeof value === 'number') return { value: 20_000 + index, mark };
  if (Array.isArray(value)) return { value: [mark], mark };
  return { value: typeof value === 'string' ? mark : { [mark]: mark }, mark };
}

/** Returns the permitted values that differ from the installation's value. */
function alternatives({ path, choices, default: value }: ChartValue, installation: Installation): readonly unknown[] {
  const given = parseDocument(readFileSync(valuesFile(installation), 'utf8')).getIn(path.split('.')) ?? value;
  const all = typeof value === 'boolean' ? [true, false] : choices.map(({ word }) => word);
  return all.filter((each) => each !== given);
}

const FULL = INSTALLATIONS.at(-1) as Installation;

function nested(path: string, value: unknown): object {
  return path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object;
}

describe('values.yaml', requireProgram('helm'), () => {
  test('has no unused value', async () => {
    await using folder = temporaryDirectory('values');
    const values = leaves(parseValues(chartFile(WEIR_CHART, 'values.yaml')));
    assert.ok(values.length > 30);
    const rendered = async (installation: Installation, changes: readonly object[]): Promise<string> => {
      const files = changes.map((change, index) => {
        const path = join(folder.path, `${crypto.randomUUID()}-${index}.yaml`);
        writeFileSync(path, JSON.stringify(change));
        return `--values=${path}`;
      });
      // Skips the schema, which would refuse the marks where a value must match a pattern or a list of words.
      const text = await renderChart(installation, '--skip-schema-validation', ...files);
      // Masks generated keys, certificates and checksums, because they differ at each rendering.
      return text.replaceAll(/[A-Za-z0-9+/]{40,}=*/g, '…');
    };

    // Tests most values in one rendering of the installation with nearly all features. Tests each remaining value in separate renderings.
    const candidates = values.map((each, index) => ({ each, found: markedValue(each, index) }));
    const changes = candidates.flatMap(({ each, found }) =>
      found === undefined ? [] : [nested(each.path, found.value)],
    );
    const text = await rendered(FULL, changes);
    const rest = candidates.filter(({ found }) => found === undefined || !text.includes(found.mark));

    const plain = new Map<Installation, string>();
    for (const each of INSTALLATIONS) plain.set(each, await rendered(each, []));
    const differs = async (installation: Installation, { path }: ChartValue, value: unknown): Promise<boolean> => {
      const text = await rendered(installation, [nested(path, value)]).catch((error: Error) => error.message);
      return text !== plain.get(installation);
    };
    const unused: string[] = [];
    for (const { each, found } of rest) {
      let used = false;
      for (const installation of INSTALLATIONS.toReversed())
        for (const other of found === undefined ? alternatives(each, installation) : [found.value])
          used ||= await differs(installation, each, other);
      if (!used) unused.push(each.path);
    }
    assert.deepEqual(unused, []);
  });
});
