import assert from 'node:assert/strict';
import { mkdirSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, type TestContext, test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { type DirectorySource, openDirectorySource } from '../../../src/watch/directory/directory-source.ts';
import {
  createManifestDirectory,
  type ManifestDirectory,
  portByService,
  service,
  waitUntil,
} from '../../fixtures/manifest-directory.ts';

let manifests: ManifestDirectory;
let directory: string;

beforeEach((context) => {
  manifests = createManifestDirectory(context as TestContext);
  directory = manifests.path;
});

describe('a manifest directory', { timeout: 20_000 }, () => {
  test('reads files at any depth, in multi-document YAML, JSON and lists', async () => {
    manifests.write('a.yaml', `# a comment\n---\n${service('web', 80)}---\n---\n${service('api', 81)}`);
    manifests.write(
      'b.json',
      JSON.stringify(
        { apiVersion: 'v1', kind: 'Service', metadata: { name: 'plain' }, spec: { ports: [{ port: 82 }] } },
        null,
        '\t',
      ),
    );
    mkdirSync(join(directory, 'deep/er'), { recursive: true });
    const items = [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'one', namespace: 'game' },
        spec: { ports: [{ port: 83 }] },
      },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'game', labels: { team: 'g' } } },
    ];
    manifests.write('deep/er/list.yml', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    manifests.write('.draft.yaml', service('draft', 1));
    manifests.write('notes.txt', 'not: [a manifest');
    const source = await manifests.open();
    assert.deepEqual(portByService(source), { 'default/plain': 82, 'game/one': 83, 'shop/api': 81, 'shop/web': 80 });
    assert.deepEqual(manifests.problems(source), []);
    const namespaces = source.snapshot().namespaces.map(({ name, labels }) => [name, labels]);
    assert.deepEqual(namespaces, [
      ['default', { 'kubernetes.io/metadata.name': 'default' }],
      ['game', { team: 'g', 'kubernetes.io/metadata.name': 'game' }],
      ['shop', { 'kubernetes.io/metadata.name': 'shop' }],
    ]);
  });

  test('gives an object the same UID in every file, and no creation time', async () => {
    manifests.write('a.yaml', service('web', 80));
    const first = (await manifests.open()).snapshot().services[0];
    renameSync(join(directory, 'a.yaml'), join(directory, 'z.yaml'));
    manifests.write(
      'z.yaml',
      `${service('web', 81)}\n`.replace(
        'metadata: {',
        'metadata: {creationTimestamp: "2020-01-01T00:00:00Z", uid: other, ',
      ),
    );
    const second = (await manifests.open()).snapshot().services[0];
    assert.match(first?.uid ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.equal(second?.uid, first?.uid);
    assert.equal(second?.createdAt, null);
  });

  test('ignores the status in a dump, which another load balancer wrote', async () => {
    manifests.write('a.yaml', `${service('web', 80)}status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}\n`);
    assert.deepEqual((await manifests.open()).snapshot().services[0]?.publishedIPs, []);
  });

  test('counts well-formed objects of other kinds and reads the rest', async () => {
    manifests.write(
      'a.yaml',
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\n${service('web', 80)}`,
    );
    manifests.write('b.yaml', 'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: f}\n');
    const source = await manifests.open();
    assert.deepEqual([...source.ignoredKinds()].sort(), [
      ['Deployment', 1],
      ['Service', 1],
    ]);
    assert.deepEqual(manifests.problems(source), []);
  });

  test('reports file and line of everything that it cannot read', async () => {
    manifests.write(
      'bad.yaml',
      `${service('web', 80)}---\nkind: Service\n  metadata: nonsense\n---\n${service('api', 99_999)}---\njust text\n`,
    );
    manifests.write(
      'kinds.yaml',
      'apiVersion: weir.dev/v1alpha1\nkind: TenantPolice\nmetadata: {name: x}\n---\napiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: x}\n---\nname: web\n',
    );
    const source = await manifests.open();
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    assert.deepEqual(manifests.problems(source), [
      'InvalidDocument bad.yaml:8: is not valid YAML: Nested mappings are not allowed in compact mappings',
      'InvalidObject Service shop/api: spec.ports[0].port is 99999; use a whole number from 1 to 65535 (bad.yaml:11)',
      'InvalidDocument bad.yaml:18: is not a Kubernetes object; use a mapping with apiVersion and kind',
      'UnknownKind kinds.yaml:1: this version of Weir does not know weir.dev/v1alpha1 TenantPolice; use TenantPolicy or Suspension, with apiVersion weir.dev/v1alpha1',
      'UnknownKind kinds.yaml:5: this version of Weir does not know discovery.k8s.io/v1beta1 EndpointSlice; use apiVersion discovery.k8s.io/v1',
      'InvalidDocument kinds.yaml:9: is not a Kubernetes object: it needs apiVersion and kind, as text',
    ]);
  });

  test('reports both places of an object that is defined twice', async () => {
    manifests.write('a.yaml', `${service('web', 80)}---\n${service('api', 1)}---\n${service('api', 2)}`);
    manifests.write('b.yaml', service('web', 81));
    const source = await manifests.open();
    assert.deepEqual(portByService(source), { 'shop/api': 1, 'shop/web': 80 });
    assert.deepEqual(manifests.problems(source), [
      'DuplicateObject Service shop/api: is defined in a.yaml:8 and in a.yaml:15; the first definition is used; delete one of the two',
      'DuplicateObject Service shop/web: is defined in a.yaml:1 and in b.yaml:1; the first definition is used; delete one of the two',
    ]);
  });

  test('keeps the object of the first file when a copy of that file appears', async () => {
    manifests.write('web.yaml', service('web', 80));
    const source = await manifests.open();
    manifests.write('a-copy.yaml', service('web', 81));
    await waitUntil(source, () => manifests.problems(source).length > 0);
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    unlinkSync(join(directory, 'web.yaml'));
    await waitUntil(source, () => portByService(source)['shop/web'] === 81);
    assert.deepEqual(manifests.problems(source), []);
  });

  test('rejects a path that does not exist with one clear message', async () => {
    await assert.rejects(
      openDirectorySource({ paths: [join(directory, 'nowhere')], clock: systemClock }),
      (error: Error) =>
        error.message === `-f ${directory}/nowhere: does not exist; name a file or directory of manifests`,
    );
    await assert.rejects(openDirectorySource({ paths: [], clock: systemClock }), /name a file or directory with -f/);
  });

  test('reports YAML that multiplies, nests or loops without end as a problem', async () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((c, i) => `${c}: &${c} [${Array(10).fill(`*${'abcdefgh'[i]}`).join(',')}]`),
    ];
    manifests.write('bomb.yaml', bomb.join('\n'));
    manifests.write('deep.yaml', '['.repeat(20_000));
    manifests.write('zero.yaml', '\0\u0001\0');
    manifests.write('good.yaml', service('web', 80));
    symlinkSync('.', join(directory, 'loop'));
    symlinkSync('nowhere', join(directory, 'dangling.yaml'));
    const source = await manifests.open();
    assert.deepEqual(portByService(source), { 'shop/web': 80 });
    assert.deepEqual(
      source.snapshot().problems.map((each) => each.code),
      ['InvalidDocument', 'InvalidDocument', 'InvalidDocument'],
    );
  });
});

describe('nodes of a manifest directory', () => {
  const node = (name: string, labels: string): string =>
    `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: {${labels}}}\nstatus: {addresses: [{type: InternalIP, address: 10.0.0.1}]}\n`;
  const nodesOf = (source: DirectorySource): string[] =>
    source.snapshot().nodes.map((each) => `${each.name} ${each.internalIPs.join()} ${each.labels.role ?? '-'}`);

  test('are one node on loopback by default', async () => {
    assert.deepEqual(nodesOf(await manifests.open()), ['local 127.0.0.1 loadbalancer']);
  });

  test('come from the command line unless the manifests have labelled Nodes', async () => {
    const nodes = [
      { name: 'b', address: '127.0.0.3' },
      { name: 'a', address: '127.0.0.2' },
    ];
    assert.deepEqual(nodesOf(await manifests.open({ nodes })), [
      'a 127.0.0.2 loadbalancer',
      'b 127.0.0.3 loadbalancer',
    ]);
    manifests.write('node.yaml', node('real', 'role: loadbalancer'));
    assert.deepEqual(nodesOf(await manifests.open({ nodes })), ['real 10.0.0.1 loadbalancer']);
  });

  test('reports Nodes in the manifests without the label', async () => {
    manifests.write('node.yaml', node('real', 'x: y'));
    const source = await manifests.open();
    assert.deepEqual(nodesOf(source), ['local 127.0.0.1 loadbalancer', 'real 10.0.0.1 -']);
    assert.match(
      manifests.problems(source)[0] ?? '',
      /^NoNodes Node real: no Node in the manifests has the label role=loadbalancer/,
    );
  });
});

test('does not count a Suspension as deleted while a broken file may hide it', async () => {
  const suspension =
    'apiVersion: weir.dev/v1alpha1\nkind: Suspension\nmetadata: {name: x}\nspec: {target: {type: Tenant, tenant: shop}}\n';
  manifests.write('s.yaml', suspension);
  const source = await manifests.open({ watched: false });
  const [found] = source.snapshot().suspensions;
  assert.ok(found);
  const origin = source.originOf(found);
  assert.deepEqual(origin, { kind: 'file', path: join(directory, 's.yaml') });
  const { madeBy: _, rule: __, ...kept } = found;
  const removed = { ...kept, origin, reason: 'SuspendedByOperator' } as const;
  assert.equal(await source.isDeleted(removed), false);
  manifests.write('s.yaml', `${suspension}  nonsense`);
  assert.equal(await (await manifests.open({ watched: false })).isDeleted(removed), false);
  unlinkSync(join(directory, 's.yaml'));
  assert.equal(await (await manifests.open({ watched: false })).isDeleted(removed), true);
});
