import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { parseAllDocuments } from 'yaml';
import { renderChart } from '../../fixtures/chart-release.ts';

const MUTATING = 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy';
const OLDER_MUTATING = 'admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy';

interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly policyName?: string; readonly validationActions?: readonly string[] };
}

describe('the admission policies of the chart', requireProgram('helm'), () => {
  const policies = async (release: string, ...args: readonly string[]): Promise<readonly Rendered[]> => {
    const objects = parseAllDocuments(await renderChart(release, ...args)).map(
      (document) => document.toJS() as Rendered | null,
    );
    return objects.filter((each) => each !== null).filter(({ kind }) => kind.includes('AdmissionPolicy'));
  };
  const actionOf = (rendered: readonly Rendered[], name: string): readonly string[] | undefined =>
    rendered.find(({ kind, spec }) => kind === 'ValidatingAdmissionPolicyBinding' && spec.policyName === name)?.spec
      .validationActions;

  test('set node ports with the MutatingAdmissionPolicy version of the cluster, or warn without it', async () => {
    const mutating = (rendered: readonly Rendered[]): readonly string[] =>
      rendered
        .filter(({ kind, metadata }) => kind === 'MutatingAdmissionPolicy' && metadata.name === 'weir-node-ports')
        .map(({ apiVersion }) => apiVersion);
    const without = await policies('weir');
    assert.deepEqual(mutating(without), []);
    assert.deepEqual(actionOf(without, 'weir-node-ports'), ['Warn']);
    const older = await policies('weir', `--api-versions=${OLDER_MUTATING}`);
    assert.deepEqual(mutating(older), ['admissionregistration.k8s.io/v1beta1']);
    const both = await policies('weir', `--api-versions=${OLDER_MUTATING}`, `--api-versions=${MUTATING}`);
    assert.deepEqual(mutating(both), ['admissionregistration.k8s.io/v1']);
    const denying = await policies('weir', `--api-versions=${MUTATING}`, '--set=admission.nodePorts=Deny');
    assert.deepEqual(mutating(denying), []);
    assert.deepEqual(actionOf(denying, 'weir-node-ports'), ['Deny']);
  });

  test('of two releases have different names', async () => {
    const args = ['--set=admission.quota=true', `--api-versions=${MUTATING}`];
    const namesOf = async (release: string): Promise<readonly string[]> =>
      (await policies(release, ...args)).map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    const [first, second] = [await namesOf('weir'), await namesOf('second')];
    assert.equal(first.length, 16);
    assert.equal(second.length, 16);
    assert.deepEqual(
      first.filter((name) => second.includes(name)),
      [],
    );
  });

  test('omit the quota by default, and externalIPs with Allow', async () => {
    const rendered = await policies('weir', '--set=admission.externalIPs=Allow');
    assert.equal(actionOf(rendered, 'weir-quota'), undefined);
    assert.equal(actionOf(rendered, 'weir-external-ips'), undefined);
    assert.deepEqual(actionOf(await policies('weir'), 'weir-external-ips'), ['Deny']);
  });

  test('are not rendered with a wrong value, and the message has the allowed values', async () => {
    await assert.rejects(
      renderChart('weir', '--set=admission.nodePorts=warn'),
      /at '\/admission\/nodePorts': value must be one of 'Mutate', 'Warn', 'Deny', ''/,
    );
    await assert.rejects(
      renderChart('weir', '--set=admission.nodePorts=Mutate'),
      /admission\.nodePorts is "Mutate", but this cluster does not serve MutatingAdmissionPolicy .*; use Warn or Deny/,
    );
    await assert.rejects(
      renderChart('weir', '--set=admission.externalIPs=Warn'),
      /at '\/admission\/externalIPs': value must be one of 'Deny', 'Allow'/,
    );
  });
});

describe('the permissions of the chart to read Secrets', requireProgram('helm'), () => {
  interface Granting {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
  }
  const granted = async (...values: readonly string[]): Promise<readonly string[]> => {
    const documents = parseAllDocuments(await renderChart('weir', ...values.map((each) => `--set=${each}`)));
    return documents
      .map((document) => document.toJS() as Granting | null)
      .flatMap((each) =>
        (each?.rules ?? []).flatMap(({ resources, verbs }) =>
          resources.some((resource) => /^(?:\*|secrets)/.test(resource))
            ? [`${each?.kind} ${each?.metadata.namespace ?? ''}: ${resources} ${verbs}`]
            : [],
        ),
      );
  };

  test('are exactly those of tls.secretAccess', async () => {
    assert.deepEqual(await granted(), []);
    assert.deepEqual(await granted('tls.secretAccess=cluster'), ['ClusterRole : secrets list,watch']);
    assert.deepEqual(await granted('tls.secretAccess=namespaces', 'tls.secretNamespaces={shop,blog,shop}'), [
      'Role shop: secrets list,watch',
      'Role blog: secrets list,watch',
    ]);
  });

  test('are not rendered with contradicting values', async () => {
    await assert.rejects(
      granted('tls.secretAccess=all'),
      /at '\/tls\/secretAccess': value must be one of 'none', 'namespaces', 'cluster'/,
    );
    await assert.rejects(granted('tls.secretAccess=namespaces'), /tls\.secretNamespaces is empty/);
    await assert.rejects(
      granted('tls.secretAccess=cluster', 'tls.secretNamespaces={shop}'),
      /tls\.secretNamespaces requires tls\.secretAccess=namespaces, but tls\.secretAccess is cluster/,
    );
  });

  test('do not decide whether the chart generates a fleet secret', async () => {
    const secrets = async (...values: readonly string[]): Promise<boolean> =>
      (await renderChart('weir', ...values.map((each) => `--set=${each}`))).includes('name: weir-fleet\n');
    assert.equal(await secrets(), true);
    assert.equal(await secrets('tls.secretAccess=cluster'), true);
    assert.equal(await secrets('tls.fleetSecret=own'), false);
  });
});
