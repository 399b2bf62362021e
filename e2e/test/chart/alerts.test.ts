import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireProgram } from '@weir/testkit';
import { INSTALLATIONS, renderManifests } from '../../src/chart/rendering.ts';

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

  test('say how grave it is, and in a sentence what it is', async () => {
    for (const { alert = '', labels, annotations } of await rules()) {
      assert.match(labels?.severity ?? '', /^(critical|warning|info)$/, alert);
      assert.ok(annotations?.summary, alert);
    }
  });
});
