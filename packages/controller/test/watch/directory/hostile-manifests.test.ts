// Files that an API server would refuse. Their author gets a message, and other objects are not affected.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseContents } from '../../../src/watch/directory/file-contents.ts';
import { manifestParsersFor } from '../../../src/watch/directory/manifest-kinds.ts';
import { parseManifests } from '../../../src/watch/directory/parse-manifests.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function objectOf(kind: string, path: string, more: object): object {
  const [namespace, name] = path.split('/');
  const apiVersion = kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1';
  return { apiVersion, kind, metadata: { namespace, name }, ...more };
}
const ports = (...items: object[]): object => ({ spec: { type: 'LoadBalancer', ports: items } });
const good = objectOf('Service', 'b/good', ports({ port: 80 }));

const read = (...items: object[]): ReturnType<typeof parseContents> =>
  parseContents(
    { path: 'all.json', text: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) },
    { parsers: manifestParsersFor(undefined) },
  );

describe('hostile manifests', { timeout: 20_000 }, () => {
  test('reports the first mistakes of an object with thousands of mistakes, and the number of the rest', () => {
    const endpoints = numbers(5_000).map((i) => ({ addresses: [`nonsense${i}`] }));
    const labels = { 'kubernetes.io/service-name': 'web' };
    const slice = {
      ...objectOf('EndpointSlice', 'a/web', { addressType: 'IPv4', endpoints }),
      metadata: { namespace: 'a', name: 'web', labels },
    };
    const { objects, problems } = read(slice, good);
    assert.deepEqual([...objects.keys()], ['Service b/good']);
    assert.equal(problems.length, 21);
    assert.match(problems[0]?.message ?? '', /^endpoints\[0\]\.addresses\[0\] is "nonsense0"; use an IPv4 address/);
    assert.match(
      problems.at(-1)?.message ?? '',
      /^the object has 4980 more mistakes; correct the listed mistakes first/,
    );
  });

  test('cuts long names, kinds and keys in messages', () => {
    const long = 'x'.repeat(200_000);
    const { objects, problems } = read(
      objectOf('Service', `a/${long}`, ports({ port: 80 })),
      objectOf('Service', 'a/web', {
        ...ports({ port: 80 }),
        metadata: { namespace: 'a', name: 'web', labels: { [long]: 1 } },
      }),
      { apiVersion: 'weir.dev/v1alpha1', kind: long, metadata: { name: 'x' } },
      { apiVersion: 'weir.dev/v1alpha1', kind: 'TenantPolicy', metadata: { name: 'p' }, spec: { [long]: 1 } },
      good,
    );
    assert.deepEqual([...objects.keys()], ['Service b/good']);
    assert.equal(problems.length, 4);
    for (const { subject, message } of problems)
      assert.ok(subject.length < 400 && message.length < 1_200, subject.slice(0, 80));
  });

  test('refuses names in any script with well-formed messages, and keeps annotations as they are', () => {
    const half = '\ud83d';
    const annotations = { 'weir.dev/algorithm': `${'🐟'.repeat(60)}${half}` };
    const { objects, problems } = read(
      objectOf('Service', 'a/web', ports({ name: 'p🐟', port: 80 }, { name: `x${'🐟'.repeat(100)}${half}`, port: 81 })),
      objectOf('Service', 'a/rtl\u202e', ports({ port: 80 })),
      {
        ...objectOf('Service', 'a/note', ports({ port: 80 })),
        metadata: { namespace: 'a', name: 'note', annotations },
      },
      objectOf('Service', 'a/many', ports(...numbers(1_000).map((i) => ({ name: `p${i}`, port: i + 1 })))),
      good,
    );
    assert.deepEqual([...objects.keys()].sort(), ['Service a/many', 'Service a/note', 'Service b/good']);
    assert.equal(problems.length, 3);
    for (const { message } of problems) assert.ok(message.isWellFormed() && message.length < 400, message);
    assert.match(problems[0]?.message ?? '', /^spec\.ports\[0\]\.name is "p🐟"; use lower-case letters/u);
  });

  test('reads labels named like properties of JavaScript objects', () => {
    const labels = JSON.parse('{"__proto__": "a", "constructor": "b"}') as object;
    const { objects, problems } = read({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'constructor', labels },
    });
    assert.deepEqual(problems, []);
    const found = objects.get('Namespace constructor')?.object;
    assert.ok(found && 'labels' in found);
    assert.deepEqual(Object.entries(found.labels).slice(0, 2), [
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });

  test('reads a mapping of fifty thousand keys in linear time', () => {
    const text = (keys: number): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata:\n${numbers(keys)
        .map((i) => `  k${i}: v\n`)
        .join('')}`;
    const started = performance.now();
    assert.equal(parseManifests(text(5_000))[0]?.kind, 'object');
    const tenth = performance.now() - started;
    assert.equal(parseManifests(text(50_000))[0]?.kind, 'object');
    // With quadratic time, ten times as many keys would take a hundred times as long.
    assert.ok(performance.now() - started - tenth < 40 * tenth);
  });

  test('reports a duplicate key with its line at any depth', () => {
    const text = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports: [{port: 80, port: 81}]\n';
    assert.deepEqual(parseManifests(text), [
      { kind: 'unreadable', line: 5, message: 'is not valid YAML: Map keys must be unique' },
    ]);
  });
});

test('writes nothing to stderr about a mapping as key, which may contain a private key', async () => {
  const warnings: string[] = [];
  const listen = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listen);
  try {
    const [manifest] = parseManifests(
      'apiVersion: v1\nkind: Secret\nstringData:\n  ? { tls.key: MC4CAQAwBQYDK2Vw }\n  : tls.crt\n',
    );
    assert.equal(manifest?.kind, 'object');
    // Node emits warnings in the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(warnings, []);
  } finally {
    process.off('warning', listen);
  }
});
