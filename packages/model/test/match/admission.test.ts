import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMatcher, NOTHING_HELD, patchMatcher, translate } from '@weir/model';
import { port, service, snapshotOf } from '../build/snapshot.ts';

test('the source ranges of a Service are read once for all its ports, whatever else of it changes', () => {
  const ports = [port(80), port(81), port(82)];
  const services = [service('shop/web', { ports, sourceRanges: ['10.0.0.0/8'] })];
  const { table } = translate(snapshotOf({ services }), NOTHING_HELD);
  const matcher = createMatcher(table, 'n1');
  const admissions = (): readonly unknown[] => [...matcher.routes.values()].map(({ admits }) => admits);
  const [first] = admissions();
  assert.deepEqual(admissions(), [first, first, first]);
  const [node] = [...table.entries.values()].filter(({ kind }) => kind === 'node');
  assert.ok(node?.kind === 'node');
  patchMatcher(matcher, [{ kind: 'put', entry: { ...node, zone: 'eu-1a' } }]);
  assert.deepEqual(
    [...matcher.routes.values()].map(({ zone }) => zone),
    ['eu-1a', 'eu-1a', 'eu-1a'],
  );
  assert.deepEqual(admissions(), [first, first, first]);
});
