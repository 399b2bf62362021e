import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { golden } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { stringify } from 'yaml';
import {
  CHARTS,
  INSTALLATIONS,
  type Installation,
  normalizeManifests,
  renderManifests,
  runHelm,
  valuesFile,
  WEIR_CHART,
} from '../../src/chart/helm.ts';
import { renameRelease, renderingDiff } from '../../src/chart/rendering-diff.ts';

const PRODUCTION_VALUES = new URL('../../../docs/production-values.yaml', import.meta.url);

interface Workload {
  readonly template: { readonly metadata: { readonly annotations: Readonly<Record<string, string>> } };
}

const [DEFAULT] = INSTALLATIONS as readonly [Installation, ...Installation[]];

describe('the chart', requireProgram('helm'), () => {
  for (const installation of INSTALLATIONS) {
    const { name, release, namespace } = installation;
    test(`passes helm lint with ${name}.yaml and renders what the golden file holds`, async () => {
      const { ok, output } = await runHelm(['lint', '--strict', WEIR_CHART, '--values', valuesFile(installation)]);
      assert.ok(ok, output);
      const documents = await renderDocuments(installation);
      if (installation === DEFAULT) {
        golden(new URL('values/default.golden.yaml', import.meta.url), documents.join('---\n'));
        return;
      }
      // Renders the base here instead of reading its golden file. A change that all renderings have in common then changes only the golden
      // file of the default values.
      const base = (await renderDocuments(DEFAULT)).map((each) => renameRelease(each, installation));
      const header = [
        `# Differences of ${name}.yaml from default.golden.yaml, with release ${release} in namespace ${namespace} in both.`,
        '# "@@" gives the line in the document of default.golden.yaml and the path of the first change.',
      ];
      golden(
        new URL(`values/${name}.golden.diff`, import.meta.url),
        `${header.join('\n')}\n\n${renderingDiff(base, documents)}`,
      );
    });
  }

  test('passes helm lint and renders with docs/production-values.yaml', async () => {
    const { ok, output } = await runHelm(['lint', '--strict', WEIR_CHART, '--values', PRODUCTION_VALUES]);
    assert.ok(ok, output);
    const [installation] = INSTALLATIONS;
    assert.ok(installation);
    const manifests = await renderManifests(installation, '--values', fileURLToPath(PRODUCTION_VALUES));
    const kinds = new Set(manifests.map(({ kind }) => kind));
    for (const kind of ['DaemonSet', 'PodMonitor', 'PrometheusRule', 'NetworkPolicy']) assert.ok(kinds.has(kind), kind);
    assert.ok(!kinds.has('StatefulSet'), 'the bundled Redis was rendered');
  });

  test('refuses a release name that is invalid in names of Services', async () => {
    for (const name of ['a.b', '1st', 'x'.repeat(36)]) {
      const { ok, output } = await runHelm(['template', name, WEIR_CHART]);
      assert.equal(ok, false);
      assert.match(output, /use at most 35 lower-case letters, digits and hyphens, beginning with a letter/);
    }
    assert.ok((await runHelm(['template', 'x'.repeat(35), WEIR_CHART])).ok);
  });

  test('weir-crds passes helm lint', async () => {
    const { ok, output } = await runHelm(['lint', '--strict', new URL('weir-crds/', CHARTS)]);
    assert.ok(ok, output);
  });

  test('publishes the console as a Service of Weir without node ports', async () => {
    const [installation] = INSTALLATIONS;
    assert.ok(installation);
    const consoleOf = async (settings: string): Promise<readonly unknown[]> => {
      const manifests = await renderManifests(installation, `--set=console.service.type=LoadBalancer,${settings}`);
      const found = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'weir-console');
      const spec: Record<string, unknown> = { ...(found?.spec as object | undefined) };
      return [spec.loadBalancerClass, spec.allocateLoadBalancerNodePorts];
    };
    assert.deepEqual(await consoleOf('console.service.loadBalancerClass=weir.dev/weir'), ['weir.dev/weir', false]);
    assert.deepEqual(await consoleOf('controller.classless=true'), [undefined, false]);
    assert.deepEqual(await consoleOf('controller.classless=false'), [undefined, undefined]);
  });

  test('restarts processes for a new password of the bundled Redis, but not of an external Redis', async () => {
    const checksums = async (name: string, password: string): Promise<readonly (string | undefined)[]> => {
      const installation = INSTALLATIONS.find((each) => each.name === name);
      assert.ok(installation);
      const pair = { certificate: 'c', key: 'k' };
      const certificates = { ca: pair, redis: pair, proxy: pair, controller: pair, console: pair };
      // The generated values that the chart would look up in the cluster.
      const generated = JSON.stringify({ ...certificates, passwords: { proxy: password }, token: 't' });
      const manifests = await renderManifests(
        installation,
        '--skip-schema-validation',
        `--set-json=generated=${generated}`,
      );
      const found = manifests.filter(({ kind }) => kind === 'DaemonSet' || kind === 'Deployment');
      assert.equal(found.length, 3);
      return found.map(({ spec }) => (spec as Workload).template.metadata.annotations['checksum/secrets']);
    };
    assert.deepEqual(await checksums('external-redis', 'one'), await checksums('external-redis', 'other'));
    const [bundled, other] = [await checksums('default', 'one'), await checksums('default', 'other')];
    for (const [index, each] of bundled.entries()) assert.notEqual(each, other[index]);
  });

  test('gives only the console a certificate that is also valid for a port-forward', async () => {
    const [installation] = INSTALLATIONS;
    assert.ok(installation);
    const secrets = (await renderManifests(installation)).filter(({ type }) => type === 'kubernetes.io/tls');
    const forwarded = secrets.filter(({ data }) => {
      const { 'tls.crt': certificate = '' } = data as Readonly<Record<string, string>>;
      const x509 = new X509Certificate(Buffer.from(certificate, 'base64'));
      return x509.checkHost('localhost') !== undefined && x509.checkIP('127.0.0.1') !== undefined;
    });
    assert.deepEqual(
      forwarded.map(({ metadata }) => metadata.name),
      ['weir-console-tls'],
    );
  });

  test('gives two releases different names of cluster-scoped objects', async () => {
    const clusterScopedNames = async (name: string): Promise<readonly string[]> => {
      const installation = INSTALLATIONS.find((each) => each.name === name);
      assert.ok(installation);
      const manifests = await renderManifests(installation, '--set=crds.install=false');
      return manifests
        .filter(({ kind }) => /^Cluster|Admission|APIService/.test(kind))
        .map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    };
    const first = await clusterScopedNames('default');
    const second = await clusterScopedNames('everything');
    assert.ok(first.length > 5 && second.length > 5);
    assert.deepEqual(
      first.filter((each) => second.includes(each)),
      [],
    );
  });
});

async function renderDocuments(installation: Installation): Promise<readonly string[]> {
  const manifests = normalizeManifests(await renderManifests(installation));
  return manifests.map((each) => stringify(each, { lineWidth: 0, aliasDuplicateObjects: false }));
}
