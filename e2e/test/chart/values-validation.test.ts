import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { CRDS_CHART, chartFile, runHelm, WEIR_CHART } from '../../src/chart/helm.ts';
import { type ChartValue, parseValues } from '../../src/chart/values.ts';

const values = parseValues(chartFile(WEIR_CHART, 'values.yaml'));

/** The same values with a letter too many in each name, beside what stands there. */
function mistyped(of: readonly ChartValue[]): Record<string, unknown> {
  const wrong = of.map((each) => [`${each.key}x`, each.default]);
  const within = of.flatMap(({ key, children }) => (children === undefined ? [] : [[key, mistyped(children)]]));
  return Object.fromEntries([...wrong, ...within]);
}

const namesIn = (of: readonly ChartValue[]): readonly string[] =>
  of.flatMap(({ key, children = [] }) => [`${key}x`, ...namesIn(children)]);

describe('helm refuses', requireProgram('helm'), () => {
  test('every name of a value with a letter too many, and says which', async () => {
    await using folder = temporaryDirectory('typos');
    const path = join(folder.path, 'typos.yaml');
    writeFileSync(path, JSON.stringify(mistyped(values)));
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--values', path]);
    assert.equal(ok, false);
    const told = new Set(
      [...output.matchAll(/additional properties (.+) not allowed/g)].flatMap(([, names = '']) =>
        names.split(', ').map((each) => each.replaceAll("'", '')),
      ),
    );
    assert.deepEqual(
      namesIn(values).filter((name) => !told.has(name)),
      [],
    );
  });

  test('a word that Kubernetes does not know of resources, which it would leave out without a word', async () => {
    for (const part of ['proxy', 'controller', 'console', 'redis']) {
      const { ok, output } = await runHelm([
        'template',
        'weir',
        WEIR_CHART,
        `--set=${part}.resources.limit.memory=1Gi`,
      ]);
      assert.equal(ok, false);
      assert.match(output, new RegExp(`at '/${part}/resources': additional properties 'limit' not allowed`));
    }
  });

  test('a value of the wrong type, with its place', async () => {
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--set=controller.classless=perhaps']);
    assert.equal(ok, false);
    assert.match(output, /at '\/controller\/classless': got string, want boolean/);
  });

  test('a typo in the values of the custom resources, alone and within', async () => {
    for (const [chart, setting] of [
      [CRDS_CHART, 'kept=false'],
      [WEIR_CHART, 'weir-crds.kept=false'],
    ] as const) {
      const { ok, output } = await runHelm(['template', 'weir', chart, `--set=${setting}`]);
      assert.equal(ok, false);
      assert.match(output, /additional properties 'kept' not allowed/);
    }
  });

  test('a name of the fleet that none of its processes would take', async () => {
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--set=fleet=Edge of Weir']);
    assert.equal(ok, false);
    assert.match(output, /at '\/fleet'/);
  });

  test('what is no name of a Secret, before it stands in a manifest', async () => {
    for (const name of ['a b', 'a: b', ' ', '{{ .Release.Name }}', 'Weir', 'a'.repeat(254)]) {
      const set = `--set-json=adminToken.existingSecret=${JSON.stringify(name)}`;
      const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, set]);
      assert.equal(ok, false, name);
      assert.match(output, /at '\/adminToken\/existingSecret'/, name);
    }
  });

  test('a password in the URL of Redis without showing it, and says where it belongs', async () => {
    const url = '--set=redis.bundled=false,redis.external.url=rediss://weir:hush@redis.example.com';
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, url]);
    assert.equal(ok, false);
    assert.match(output, /put them into a Secret and set redis\.external\.existingSecret to its name/);
    assert.doesNotMatch(output, /hush/);
  });

  test('that a guard is taken away by null, of which no schema knows', async () => {
    for (const [value, words] of [
      ['admission.externalIPs', 'use Deny or Allow'],
      ['admission.nodePorts', 'use Mutate, Warn, Deny, or "" for Mutate if the cluster serves it, else Warn'],
      ['tls.secretAccess', 'use none, namespaces or cluster'],
    ] as const) {
      const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, `--set=${value}=null`]);
      assert.equal(ok, false, value);
      assert.ok(output.includes(`${value} is `) && output.includes(words), output);
    }
  });

  test('an external Redis of which nothing says where it is, or whose CA', async () => {
    const external = ['--set=redis.bundled=false'];
    const nowhere = await runHelm(['template', 'weir', WEIR_CHART, ...external]);
    assert.match(nowhere.output, /redis\.external\.url is empty; set redis\.external\.url to the URL/);
    external.push('--set=redis.external.url=rediss://redis.example.com,redis.external.ownCa=true');
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, ...external]);
    assert.equal(ok, false);
    assert.match(
      output,
      /redis\.external\.existingSecret is empty; set it to the name of a Secret that contains ca\.crt/,
    );
  });

  test('finalizers that nobody would take off when the release is gone', async () => {
    const settings = '--set=controller.cleanupFinalizer=true,uninstall.clearStatus=false';
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, settings]);
    assert.equal(ok, false);
    assert.match(output, /after an uninstall nothing would remove the finalizers/);
  });

  test('an aggregated console with a certificate that nothing tells the API server to trust, and says where to', async () => {
    const settings = ['--set=console.aggregated=true', '--set=console.tls.existingSecret=own'];
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, ...settings]);
    assert.equal(ok, false);
    assert.match(
      output,
      /put its ca\.crt into console\.apiService\.caBundle, or set an annotation in console\.apiService\.annotations/,
    );
    const trusted = await runHelm([
      'template',
      'weir',
      WEIR_CHART,
      ...settings,
      '--set=console.apiService.caBundle=PEM',
    ]);
    assert.match(trusted.stdout, /^ {2}caBundle: UEVN$/m);
  });
});
