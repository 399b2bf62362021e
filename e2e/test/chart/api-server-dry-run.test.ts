// Applies every manifest of the chart to a real API server as a dry run, to find unknown fields, invalid values and Pod Security warnings.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { type ControlPlane, programPath, requireProgram, startControlPlane, waitForCustomResources } from '@weir/tools';
import { INSTALLATIONS, type Manifest, renderManifests } from '../../src/chart/helm.ts';
import { prometheusCrds } from '../../src/chart/prometheus-crds.ts';

describe('a real API server', requireProgram('kubernetes', 'helm'), () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane();
    const [first] = INSTALLATIONS;
    assert.ok(first);
    const definitions = (await renderManifests(first)).filter(({ kind }) => kind === 'CustomResourceDefinition');
    assert.equal(definitions.length, 3);
    for (const each of [...definitions, ...prometheusCrds])
      await plane.kubectl('apply', '--server-side', '-f', '-', { stdin: JSON.stringify(each) });
    await waitForCustomResources(plane);
    const namespaces = new Set([...INSTALLATIONS.map(({ namespace }) => namespace), 'shop', 'blog']);
    for (const name of namespaces) {
      await plane.kubectl('create', 'namespace', name);
      await plane.kubectl('label', 'namespace', name, 'pod-security.kubernetes.io/warn=restricted');
    }
    // The API server admits a Pod, such as the one of `helm test`, only if its ServiceAccount exists.
    for (const installation of INSTALLATIONS) {
      const items = (await renderManifests(installation)).filter(({ kind }) => kind === 'ServiceAccount');
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
      await plane.kubectl('apply', '--server-side', '--field-manager=helm', '-f', '-', { stdin });
    }
  });
  after(() => plane?.close());

  /** Runs `kubectl apply` with all manifests as a dry run and returns the lines of its output. */
  const dryRun = async (manifests: readonly Manifest[]): Promise<{ ok: boolean; lines: readonly string[] }> => {
    await using folder = temporaryDirectory('manifests');
    const path = join(folder.path, 'all.json');
    writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
    const flags = ['--server-side', '--dry-run=server', '--validate=strict', '--field-manager=helm'];
    const kubectl = await spawnProcess({
      command: programPath('kubectl'),
      args: ['apply', ...flags, '-f', path],
      env: { ...process.env, KUBECONFIG: plane.kubeconfig, KUBECACHEDIR: join(folder.path, 'cache') },
      mayExit: true,
    });
    const { code } = await kubectl.exited;
    return { ok: code === 0, lines: kubectl.output().trim().split('\n') };
  };

  for (const installation of INSTALLATIONS) {
    test(`accepts all manifests of ${installation.name}.yaml and warns only of the host network of the proxies`, async () => {
      const manifests = await renderManifests(installation);
      const { ok, lines } = await dryRun(manifests);
      assert.ok(ok, lines.join('\n'));
      const applied = lines.filter((line) => line.endsWith('serverside-applied (server dry run)'));
      assert.equal(applied.length, manifests.length, lines.join('\n'));
      const warnings = lines.filter((line) => !applied.includes(line));
      assert.equal(warnings.length, 1, warnings.join('\n'));
      assert.match(
        warnings[0] ?? '',
        /^Warning: would violate PodSecurity "restricted:latest": host namespaces \(hostNetwork=true\), /,
      );
    });
  }

  test('refuses an unknown field', async () => {
    const [first] = INSTALLATIONS;
    assert.ok(first);
    const [pods] = (await renderManifests(first)).filter(({ kind }) => kind === 'DaemonSet');
    assert.ok(pods);
    const { ok, lines } = await dryRun([{ ...pods, spec: { ...(pods.spec as object), updateStratgy: {} } }]);
    assert.equal(ok, false);
    assert.match(lines.join('\n'), /updateStratgy/);
  });
});
