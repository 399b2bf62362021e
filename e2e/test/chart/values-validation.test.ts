import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { CRDS_CHART, chartFile, runHelm, WEIR_CHART } from '../../src/chart/helm.ts';
import { type ChartValue, parseValues } from '../../src/chart/values.ts';

const values = parseValues(chartFile(WEIR_CHART, 'values.yaml'));

/** Returns the values with an additional letter in the name of each value. */
function mistyped(values: readonly ChartValue[]): Record<string, unknown> {
  const wrong = values.map((each) => [`${each.key}x`, each.default]);
  const nested = values.flatMap(({ key, children }) => (children === undefined ? [] : [[key, mistyped(children)]]));
  return Object.fromEntries([...wrong, ...nested]);
}

const namesIn = (values: readonly ChartValue[]): readonly string[] =>
  values.flatMap(({ key, children = [] }) => [`${key}x`, ...namesIn(children)]);

describe('helm refuses', requireProgram('helm'), () => {
  test('every misspelled value and names it', async () => {
    await using folder = temporaryDirectory('typos');
    const path = join(folder.path, 'typos.yaml');
    writeFileSync(path, JSON.stringify(mistyped(values)));
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--values', path]);
    assert.equal(ok, false);
    const reported = new Set(
      [...output.matchAll(/additional properties (.+) not allowed/g)].flatMap(([, names = '']) =>
        names.split(', ').map((each) => each.replaceAll("'", '')),
      ),
    );
    assert.deepEqual(
      namesIn(values).filter((name) => !reported.has(name)),
      [],
    );
  });

  test('an unknown field of resources, which Kubernetes would ignore silently', async () => {
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

  test('a value of the wrong type and names its path', async () => {
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--set=controller.classless=perhaps']);
    assert.equal(ok, false);
    assert.match(output, /at '\/controller\/classless': got string, want boolean/);
  });

  test('a value of `global` that the chart does not use', async () => {
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--set=global.registry=mirror.example.com']);
    assert.equal(ok, false);
    assert.match(output, /at '\/global': additional properties 'registry' not allowed/);
  });

  test('a misspelled value of weir-crds, alone and as a dependency', async () => {
    for (const [chart, setting] of [
      [CRDS_CHART, 'kept=false'],
      [WEIR_CHART, 'weir-crds.kept=false'],
    ] as const) {
      const { ok, output } = await runHelm(['template', 'weir', chart, `--set=${setting}`]);
      assert.equal(ok, false);
      assert.match(output, /additional properties 'kept' not allowed/);
    }
  });

  test('a fleet name that the processes would refuse', async () => {
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, '--set=fleet=Edge of Weir']);
    assert.equal(ok, false);
    assert.match(output, /at '\/fleet'/);
  });

  test('an invalid name of a Secret', async () => {
    for (const name of ['a b', 'a: b', ' ', '{{ .Release.Name }}', 'Weir', 'a'.repeat(254)]) {
      const set = `--set-json=adminToken.existingSecret=${JSON.stringify(name)}`;
      const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, set]);
      assert.equal(ok, false, name);
      assert.match(output, /at '\/adminToken\/existingSecret'/, name);
    }
  });

  test('a password in the URL of Redis without printing it, and names the right place', async () => {
    const url = '--set=redis.bundled=false,redis.external.url=rediss://weir:hush@redis.example.com';
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, url]);
    assert.equal(ok, false);
    assert.match(output, /put them into a Secret and set redis\.external\.existingSecret to its name/);
    assert.doesNotMatch(output, /hush/);
  });

  test('null as the value of a guard, which the schema cannot refuse', async () => {
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

  test('an external Redis without URL or without CA', async () => {
    const external = ['--set=redis.bundled=false'];
    const withoutUrl = await runHelm(['template', 'weir', WEIR_CHART, ...external]);
    assert.match(withoutUrl.output, /redis\.external\.url is empty; set redis\.external\.url to the URL/);
    external.push('--set=redis.external.url=rediss://redis.example.com,redis.external.ownCa=true');
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, ...external]);
    assert.equal(ok, false);
    assert.match(
      output,
      /redis\.external\.existingSecret is empty; set it to the name of a Secret that contains ca\.crt/,
    );
  });

  test('finalizers that would remain after the release is uninstalled', async () => {
    const settings = '--set=controller.cleanupFinalizer=true,uninstall.clearStatus=false';
    const { ok, output } = await runHelm(['template', 'weir', WEIR_CHART, settings]);
    assert.equal(ok, false);
    assert.match(output, /after an uninstall nothing would remove the finalizers/);
  });

  test('an aggregated console without a CA for the API server, and names the value to set', async () => {
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
