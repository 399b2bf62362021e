import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { parseAllDocuments } from 'yaml';
import { runHelm, WEIR_CHART } from '../../src/chart/helm.ts';

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly { readonly image: string }[];
        readonly imagePullSecrets?: readonly { readonly name: string }[];
      };
    };
  };
}

/** Renders the chart with `--set` values. */
async function render(...values: readonly string[]): Promise<readonly Rendered[]> {
  const { ok, stdout, output } = await runHelm([
    'template',
    'weir',
    WEIR_CHART,
    ...values.map((each) => `--set=${each}`),
  ]);
  assert.ok(ok, output);
  return parseAllDocuments(stdout).flatMap((document) => document.toJS() ?? []);
}

const proxyOf = (manifests: readonly Rendered[]): Rendered | undefined =>
  manifests.find(({ kind }) => kind === 'DaemonSet');
const imageOf = (manifests: readonly Rendered[]): string | undefined =>
  proxyOf(manifests)?.spec?.template?.spec.containers[0]?.image;

describe('the chart', requireProgram('helm'), () => {
  for (const [values, image] of [
    [[], 'ghcr.io/weir-dev/weir-proxy:0.0.0'],
    [['proxy.image=team/proxy', 'image.tag=v1'], 'ghcr.io/weir-dev/team/proxy:v1'],
    [['proxy.image=registry.example.com/team/proxy'], 'registry.example.com/team/proxy:0.0.0'],
    [['proxy.image=localhost:5000/proxy:2', 'image.tag=v1'], 'localhost:5000/proxy:2'],
    [['proxy.image=proxy@sha256:abc', 'image.registry=mirror.example.com/'], 'mirror.example.com/proxy@sha256:abc'],
    [['global.imageRegistry=mirror.example.com'], 'mirror.example.com/weir-proxy:0.0.0'],
    [['global.imageRegistry=a.example.com', 'image.registry=b.example.com'], 'b.example.com/weir-proxy:0.0.0'],
  ] as const) {
    test(`takes image ${image} from ${values.join(' ') || 'the defaults'}`, async () => {
      assert.equal(imageOf(await render(...values)), image);
    });
  }

  test('uses the pull Secrets of both values', async () => {
    const manifests = await render('image.pullSecrets[0]=own', 'global.imagePullSecrets[0]=shared');
    assert.deepEqual(proxyOf(manifests)?.spec?.template?.spec.imagePullSecrets, [{ name: 'own' }, { name: 'shared' }]);
  });

  for (const [values, name] of [
    [['nameOverride=lb'], 'weir-lb-proxy'],
    [['fullnameOverride=edge'], 'edge-proxy'],
  ] as const) {
    test(`names its objects after ${values.join()}`, async () => {
      assert.equal(proxyOf(await render(...values))?.metadata.name, name);
    });
  }

  test('adds commonLabels to every object', async () => {
    for (const { kind, metadata } of await render('commonLabels.team=network', 'crds.install=false'))
      assert.equal(metadata.labels?.team, 'network', `${kind} ${metadata.name}`);
  });
});
