import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { renameRelease, renderingDiff } from '../../src/chart/rendering-diff.ts';

const document = (name: string, ...lines: readonly string[]): string =>
  `${['kind: Service', 'metadata:', `  name: ${name}`, ...lines].join('\n')}\n`;

const PORTS = ['spec:', '  ports:', '    - name: web', '      port: 80', '    - name: dns', '      port: 80'];
const BASE = [document('a', ...PORTS), document('b'), document('c')];

describe('a diff of two renderings', () => {
  test('is empty for equal renderings', () => {
    assert.equal(renderingDiff(BASE, [...BASE]), '');
  });

  test('gives the line, the path and one line of context of a change', () => {
    const changed = document('a', ...PORTS).replace('port: 80', 'port: 81');
    assert.equal(
      renderingDiff(BASE, [changed, ...BASE.slice(1)]),
      'changed Service a\n@@ 6 spec.ports[web]\n     - name: web\n-      port: 80\n+      port: 81\n     - name: dns\n',
    );
  });

  test('lists an added document in full with its place, and a removed document by name', () => {
    assert.equal(
      renderingDiff(BASE, [BASE[0] ?? '', document('d'), BASE[2] ?? '']),
      'removed Service b\n\nadded Service d, after Service a\n+kind: Service\n+metadata:\n+  name: d\n',
    );
  });

  test('differs for every other order of the same documents', () => {
    const [a = '', b = '', c = ''] = BASE;
    const orders = [
      [a, c, b],
      [b, a, c],
      [b, c, a],
      [c, a, b],
      [c, b, a],
    ];
    assert.equal(new Set(['', ...orders.map((each) => renderingDiff(BASE, each))]).size, 6);
  });

  test('differs for every place of an added line, and for added blank lines', () => {
    const lines = (BASE[0] ?? '').split('\n');
    const renderings = ['# x', '', ' '].flatMap((added) =>
      lines.map((_, index) => [...lines.slice(0, index), added, ...lines.slice(index)].join('\n')),
    );
    const diffs = new Set(renderings.map((each) => renderingDiff(BASE, [each, ...BASE.slice(1)])));
    assert.equal(diffs.size, new Set(renderings).size);
    assert.ok(!diffs.has(''));
  });
});

test('renameRelease changes the names of objects and keeps images, Redis users and other words', () => {
  const installation = { name: 'everything', release: 'edge', namespace: 'apps' };
  const renamed = (line: string): string => renameRelease(line, installation);
  assert.equal(renamed('  name: weir-proxy'), '  name: edge-weir-proxy');
  assert.equal(renamed('  app.kubernetes.io/instance: weir'), '  app.kubernetes.io/instance: edge');
  assert.equal(
    renamed('  value: rediss://weir-redis.weir-system.svc:6379'),
    '  value: rediss://edge-weir-redis.apps.svc:6379',
  );
  for (const kept of ['image: ghcr.io/weir-dev/weir-proxy:1.0.0', '  value: weir-proxy', 'name: weir'])
    assert.equal(renamed(kept), kept);
});
