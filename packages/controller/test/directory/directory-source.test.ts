import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, type TestContext, test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { temporaryDirectory } from '@weir/testkit';
import {
  type DirectoryOptions,
  type DirectorySource,
  openDirectorySource,
} from '../../src/watch/directory/directory-source.ts';

let directory: string;

beforeEach(async (context) => {
  const temporary = temporaryDirectory('manifests');
  directory = temporary.path;
  (context as TestContext).after?.(() => temporary.close());
});

const service = (name: string, port: number | string, namespace = 'shop'): string =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec:\n  type: LoadBalancer\n  ports: [{port: ${port}}]\n`;

async function open(context: TestContext, options: Partial<DirectoryOptions> = {}): Promise<DirectorySource> {
  const source = await openDirectorySource({ paths: [directory], clock: systemClock, ...options });
  context.after(() => source.close());
  return source;
}

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

function ports(source: DirectorySource): Record<string, number | undefined> {
  return Object.fromEntries(
    source.snapshot().services.map((each) => [`${each.namespace}/${each.name}`, each.ports[0]?.port]),
  );
}

function problems(source: DirectorySource): string[] {
  return source
    .snapshot()
    .problems.map((each) => `${each.code} ${each.subject}: ${each.message}`.replaceAll(`${directory}/`, ''));
}

/** Resolves when the snapshot has become as wanted; the test's own time limit ends what never does. */
function until(source: DirectorySource, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!isSo()) return;
      stop();
      resolve();
    };
    const stop = source.onChange(check);
    check();
  });
}

describe('a directory', { timeout: 20_000 }, () => {
  test('gives what its files hold, at any depth, in YAML with several documents, JSON and lists', async (context) => {
    write('a.yaml', `# a comment\n---\n${service('web', 80)}---\n---\n${service('api', 81)}`);
    write(
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
    write('deep/er/list.yml', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    write('.draft.yaml', service('draft', 1));
    write('notes.txt', 'not: [a manifest');
    const source = await open(context);
    assert.deepEqual(ports(source), { 'default/plain': 82, 'game/one': 83, 'shop/api': 81, 'shop/web': 80 });
    assert.deepEqual(problems(source), []);
    const namespaces = source.snapshot().namespaces.map(({ name, labels }) => [name, labels]);
    assert.deepEqual(namespaces, [
      ['default', { 'kubernetes.io/metadata.name': 'default' }],
      ['game', { team: 'g', 'kubernetes.io/metadata.name': 'game' }],
      ['shop', { 'kubernetes.io/metadata.name': 'shop' }],
    ]);
  });

  test('gives an object the same UID wherever it stands, and no time', async (context) => {
    write('a.yaml', service('web', 80));
    const first = (await open(context)).snapshot().services[0];
    renameSync(join(directory, 'a.yaml'), join(directory, 'z.yaml'));
    write(
      'z.yaml',
      `${service('web', 81)}\n`.replace(
        'metadata: {',
        'metadata: {creationTimestamp: "2020-01-01T00:00:00Z", uid: other, ',
      ),
    );
    const second = (await open(context)).snapshot().services[0];
    assert.match(first?.uid ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.equal(second?.uid, first?.uid);
    assert.equal(second?.createdAt, null);
  });

  test('does not believe the status in a dump: another load balancer wrote it', async (context) => {
    write('a.yaml', `${service('web', 80)}status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}\n`);
    assert.deepEqual((await open(context)).snapshot().services[0]?.publishedIPs, []);
  });

  test('counts well-formed objects of other kinds and reads on', async (context) => {
    write('a.yaml', `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\n${service('web', 80)}`);
    write('b.yaml', 'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: f}\n');
    const source = await open(context);
    assert.deepEqual([...source.ignored()].sort(), [
      ['Deployment', 1],
      ['Service', 1],
    ]);
    assert.deepEqual(problems(source), []);
  });

  test('names file and line of everything it cannot take', async (context) => {
    write(
      'bad.yaml',
      `${service('web', 80)}---\nkind: Service\n  metadata: nonsense\n---\n${service('api', 99_999)}---\njust text\n`,
    );
    write(
      'kinds.yaml',
      'apiVersion: weir.dev/v1alpha1\nkind: TenantPolice\nmetadata: {name: x}\n---\napiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: x}\n---\nname: web\n',
    );
    const source = await open(context);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    assert.deepEqual(problems(source), [
      'InvalidDocument bad.yaml:8: is not valid YAML: Nested mappings are not allowed in compact mappings',
      'InvalidObject Service shop/api: spec.ports[0].port is 99999; use a whole number from 1 to 65535 (bad.yaml:11)',
      'InvalidDocument bad.yaml:18: is no Kubernetes object; use a mapping with apiVersion and kind',
      'UnknownKind kinds.yaml:1: weir.dev/v1alpha1 TenantPolice is not known to this version of Weir; use TenantPolicy or Suspension, with apiVersion weir.dev/v1alpha1',
      'UnknownKind kinds.yaml:5: discovery.k8s.io/v1beta1 EndpointSlice is not known to this version of Weir; use apiVersion discovery.k8s.io/v1',
      'InvalidDocument kinds.yaml:9: is no Kubernetes object: apiVersion and kind missing, or no text',
    ]);
  });

  test('names both places of an object that stands in two', async (context) => {
    write('a.yaml', `${service('web', 80)}---\n${service('api', 1)}---\n${service('api', 2)}`);
    write('b.yaml', service('web', 81));
    const source = await open(context);
    assert.deepEqual(ports(source), { 'shop/api': 1, 'shop/web': 80 });
    assert.deepEqual(problems(source), [
      'DuplicateObject Service shop/api: stands in a.yaml:8 and in a.yaml:15; the first is used, delete one of them',
      'DuplicateObject Service shop/web: stands in a.yaml:1 and in b.yaml:1; the first is used, delete one of them',
    ]);
  });

  test('leaves an object to the file that had it when a copy of that file appears', async (context) => {
    write('web.yaml', service('web', 80));
    const source = await open(context);
    write('a-copy.yaml', service('web', 81));
    await until(source, () => problems(source).length > 0);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    unlinkSync(join(directory, 'web.yaml'));
    await until(source, () => ports(source)['shop/web'] === 81);
    assert.deepEqual(problems(source), []);
  });

  test('shows an edit within 100 ms, whichever way the editor writes', async (context) => {
    write('a.yaml', service('web', 80));
    const source = await open(context);
    const edits: Record<string, (text: string) => void> = {
      'in place': (text) => write('a.yaml', text),
      'beside and renamed over': (text) => {
        write('.a.yaml.swp', text);
        renameSync(join(directory, '.a.yaml.swp'), join(directory, 'a.yaml'));
      },
      'old one moved away, new one written': (text) => {
        renameSync(join(directory, 'a.yaml'), join(directory, 'a.yaml~'));
        write('a.yaml', text);
      },
    };
    let port = 80;
    for (const [way, edit] of Object.entries(edits)) {
      // The machine may be busy with something else: the fastest of a few counts.
      const durations: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        port += 1;
        const startedAt = performance.now();
        edit(service('web', port));
        await until(source, () => ports(source)['shop/web'] === port);
        durations.push(performance.now() - startedAt);
      }
      assert.ok(Math.min(...durations) < 100, `${way} took ${durations.join(', ')} ms`);
    }
  });

  test('sees two writes of the same length right after each other', async (context) => {
    write('a.yaml', service('web', 80));
    const source = await open(context);
    for (let port = 81; port < 90; port += 1) {
      write('a.yaml', service('web', port));
      await until(source, () => ports(source)['shop/web'] === port);
    }
  });

  test('watches a file given by name, and one that replaces it', async (context) => {
    write('only.conf', service('web', 80));
    write('other.yaml', service('api', 80));
    const source = await open(context, { paths: [join(directory, 'only.conf')] });
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    write('new', service('web', 81));
    renameSync(join(directory, 'new'), join(directory, 'only.conf'));
    await until(source, () => ports(source)['shop/web'] === 81);
  });

  test('follows a mounted ConfigMap, whose version is a link that is swapped', async (context) => {
    for (const version of ['..1', '..2']) mkdirSync(join(directory, version));
    write('..1/a.yaml', service('web', 80));
    write('..2/a.yaml', service('web', 81));
    symlinkSync('..1', join(directory, '..data'));
    symlinkSync('..data/a.yaml', join(directory, 'a.yaml'));
    const source = await open(context);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    symlinkSync('..2', join(directory, '..tmp'));
    renameSync(join(directory, '..tmp'), join(directory, '..data'));
    await until(source, () => ports(source)['shop/web'] === 81);
  });

  test('takes in directories that appear, and lets go of files that disappear', async (context) => {
    const source = await open(context);
    mkdirSync(join(directory, 'team'));
    write('team/a.yaml', service('web', 80));
    await until(source, () => ports(source)['shop/web'] === 80);
    write('team/a.yaml', service('web', 81));
    await until(source, () => ports(source)['shop/web'] === 81);
    rmSync(join(directory, 'team'), { recursive: true });
    await until(source, () => source.snapshot().services.length === 0);
  });

  test('goes on with the last good objects while a file is being spoiled, and takes the repaired one', async (context) => {
    write('a.yaml', `${service('web', 80)}---\n${service('api', 81)}`);
    const source = await open(context);
    write('a.yaml', `${service('web', 90)}---\n${service('api', 0)}`);
    await until(source, () => ports(source)['shop/web'] === 90);
    assert.deepEqual(ports(source), { 'shop/api': 81, 'shop/web': 90 });
    assert.equal(problems(source).length, 1);
    write('a.yaml', `${service('web', 91)}---\n{{ broken`);
    await until(source, () => ports(source)['shop/web'] === 91);
    assert.deepEqual(
      ports(source),
      { 'shop/api': 81, 'shop/web': 91 },
      'the broken document may be any of the missing',
    );
    write('a.yaml', service('web', 92));
    await until(source, () => ports(source)['shop/web'] === 92);
    assert.deepEqual(ports(source), { 'shop/web': 92 });
    assert.deepEqual(problems(source), []);
  });

  test('takes nothing out while an editor has truncated a file and not written it yet', async (context) => {
    write('a.yaml', service('web', 80));
    const source = await open(context);
    const seen: (number | undefined)[] = [];
    source.onChange(() => seen.push(ports(source)['shop/web']));
    write('a.yaml', '');
    await source.look();
    write('a.yaml', service('web', 81));
    await until(source, () => ports(source)['shop/web'] === 81);
    assert.ok(!seen.includes(undefined), `it was gone in between: ${seen.join(', ')}`);
    write('a.yaml', '');
    await until(source, () => source.snapshot().services.length === 0);
  });

  test('wakes nobody for a change that says the same', async (context) => {
    write('a.yaml', service('web', 80));
    const source = await open(context);
    const before = source.snapshot();
    let woken = 0;
    source.onChange(() => {
      woken += 1;
    });
    write('a.yaml', `# only a comment\n${service('web', 80)}`);
    await source.look();
    assert.equal(woken, 0);
    assert.equal(source.snapshot(), before);
  });

  test('that does not exist is one clear message', async () => {
    await assert.rejects(
      openDirectorySource({ paths: [join(directory, 'nowhere')], clock: systemClock }),
      (error: Error) =>
        error.message === `-f ${directory}/nowhere: does not exist; name a file or directory of manifests`,
    );
    await assert.rejects(openDirectorySource({ paths: [], clock: systemClock }), /name a file or directory with -f/);
  });

  test('that goes away later is a problem, and what it gave goes on', async (context) => {
    const inner = mkdtempSync(join(directory, 'mount-'));
    writeFileSync(join(inner, 'a.yaml'), service('web', 80));
    const source = await open(context, { paths: [inner] });
    renameSync(inner, join(directory, 'away'));
    await until(source, () => problems(source).length > 0);
    assert.match(problems(source)[0] ?? '', /^UnreadableFile mount-\S+: does not exist; what it gave before goes on/);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    renameSync(join(directory, 'away'), inner);
    await until(source, () => problems(source).length === 0);
    writeFileSync(join(inner, 'a.yaml'), service('web', 81));
    await until(source, () => ports(source)['shop/web'] === 81);
  });

  test('whose folder becomes a link that leads in circles is a problem, and what it gave goes on', async (context) => {
    const folder = join(directory, 'folder');
    mkdirSync(folder);
    write('folder/web.yaml', service('web', 80));
    const source = await open(context, { paths: [join(folder, 'web.yaml')] });
    rmSync(folder, { recursive: true });
    symlinkSync(folder, folder);
    await source.look();
    await until(source, () => problems(source).length > 0);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    unlinkSync(folder);
    mkdirSync(folder);
    write('folder/web.yaml', service('web', 81));
    await until(source, () => ports(source)['shop/web'] === 81);
  });

  test('with YAML that multiplies, nests or loops without end is a problem like any other', async (context) => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((c, i) => `${c}: &${c} [${Array(10).fill(`*${'abcdefgh'[i]}`).join(',')}]`),
    ];
    write('bomb.yaml', bomb.join('\n'));
    write('deep.yaml', '['.repeat(20_000));
    write('zero.yaml', '\0\u0001\0');
    write('good.yaml', service('web', 80));
    symlinkSync('.', join(directory, 'loop'));
    symlinkSync('nowhere', join(directory, 'dangling.yaml'));
    const source = await open(context);
    assert.deepEqual(ports(source), { 'shop/web': 80 });
    assert.deepEqual(
      source.snapshot().problems.map((each) => each.code),
      ['InvalidDocument', 'InvalidDocument', 'InvalidDocument'],
    );
  });
});

describe('the nodes of a directory', () => {
  const node = (name: string, labels: string): string =>
    `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: {${labels}}}\nstatus: {addresses: [{type: InternalIP, address: 10.0.0.1}]}\n`;
  const nodesOf = (source: DirectorySource): string[] =>
    source.snapshot().nodes.map((each) => `${each.name} ${each.internalIPs.join()} ${each.labels.role ?? '-'}`);

  test('are one on loopback when nobody says anything', async (context) => {
    assert.deepEqual(nodesOf(await open(context)), ['local 127.0.0.1 loadbalancer']);
  });

  test('are those of the command line, unless the manifests hold labelled ones', async (context) => {
    const nodes = [
      { name: 'b', address: '127.0.0.3' },
      { name: 'a', address: '127.0.0.2' },
    ];
    assert.deepEqual(nodesOf(await open(context, { nodes })), ['a 127.0.0.2 loadbalancer', 'b 127.0.0.3 loadbalancer']);
    write('node.yaml', node('real', 'role: loadbalancer'));
    assert.deepEqual(nodesOf(await open(context, { nodes })), ['real 10.0.0.1 loadbalancer']);
  });

  test('of the manifests without the label are told so', async (context) => {
    write('node.yaml', node('real', 'x: y'));
    const source = await open(context);
    assert.deepEqual(nodesOf(source), ['local 127.0.0.1 loadbalancer', 'real 10.0.0.1 -']);
    assert.match(
      problems(source)[0] ?? '',
      /^NoNodes Node real: no Node of the manifests carries the label role=loadbalancer/,
    );
  });
});

test('a Suspension that a broken file may hide is not taken for deleted', async (context) => {
  const suspension =
    'apiVersion: weir.dev/v1alpha1\nkind: Suspension\nmetadata: {name: x}\nspec: {target: {type: Tenant, tenant: shop}}\n';
  write('s.yaml', suspension);
  const source = await open(context, { watched: false });
  const [found] = source.snapshot().suspensions;
  assert.ok(found);
  const origin = source.originOf(found);
  assert.deepEqual(origin, { kind: 'file', path: join(directory, 's.yaml') });
  const cutoff = { ...found, origin, reason: 'SuspendedByOperator' } as const;
  assert.equal(await source.isDeleted(cutoff), false);
  write('s.yaml', `${suspension}  nonsense`);
  assert.equal(await (await open(context, { watched: false })).isDeleted(cutoff), false);
  unlinkSync(join(directory, 's.yaml'));
  assert.equal(await (await open(context, { watched: false })).isDeleted(cutoff), true);
});
