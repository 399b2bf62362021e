import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { CHARTS, chartMetadata, runHelm } from '../../src/chart/helm.ts';

describe('a chart', requireProgram('helm'), () => {
  for (const name of ['weir', 'weir-crds']) {
    test(`is packaged identically from checkouts of different days: ${name}`, async () => {
      await using folder = temporaryDirectory('packed');
      const packed = async (day: string): Promise<Buffer> => {
        const copy = join(folder.path, day);
        cpSync(fileURLToPath(CHARTS), copy, { recursive: true, verbatimSymlinks: true });
        for (const file of readdirSync(copy, { recursive: true, encoding: 'utf8' }))
          utimesSync(join(copy, file), new Date(day), new Date(day));
        const args = ['package', join(copy, name), `--destination=${join(copy, 'packed')}`];
        const { ok, output } = await runHelm(args, { SOURCE_DATE_EPOCH: '1796083200' });
        assert.ok(ok, output);
        return readFileSync(join(copy, 'packed', `${name}-${chartMetadata(new URL(`${name}/`, CHARTS)).version}.tgz`));
      };
      const [first, second] = [await packed('2026-12-01'), await packed('2026-12-02')];
      assert.ok(first.equals(second));
    });
  }

  test('contains the CRDs of the chart weir-crds when packaged', async () => {
    await using folder = temporaryDirectory('packed');
    const { ok, output } = await runHelm(['package', new URL('weir/', CHARTS), `--destination=${folder.path}`]);
    assert.ok(ok, output);
    const [archive = ''] = readdirSync(folder.path);
    const rendered = await runHelm(['template', 'weir', join(folder.path, archive)]);
    assert.equal(rendered.stdout.match(/^kind: CustomResourceDefinition$/gm)?.length, 3, rendered.output);
  });
});
