import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServiceObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { parseService } from '../../../src/parse/service.ts';
import { ConfigMapWatches } from '../../../src/watch/kubernetes/config-map-watches.ts';

function service(name: string, pages: string, namespace = 'shop'): ServiceObject {
  const metadata = { uid: name, namespace, name, annotations: { 'weir.dev/error-pages': pages } };
  const spec = { type: 'LoadBalancer', ports: [{ port: 80, appProtocol: 'http' }] };
  const { object } = parseService({ metadata, spec });
  assert.ok(object);
  return object;
}
const create = (): ConfigMapWatches =>
  new ConfigMapWatches(({ name }) => name !== 'foreign', { clock: new ManualClock(), onChange: () => undefined });
const namesOf = (watches: ReturnType<ConfigMapWatches['update']>): readonly unknown[] =>
  watches.map(({ options }) => `${options.namespace}/${options.objectName}`);

test('watches each named ConfigMap once, until no Service names it', () => {
  const watches = create();
  const services = [service('a', 'x'), service('b', 'x'), service('foreign', 'y'), service('c', 'x', 'game')];
  const added = watches.update(services);
  assert.deepEqual(namesOf(added), ['game/x', 'shop/x']);
  assert.deepEqual(
    added.map(({ options }) => [options.path, options.query]),
    [
      ['/api/v1/namespaces/game/configmaps', { fieldSelector: 'metadata.name=x' }],
      ['/api/v1/namespaces/shop/configmaps', { fieldSelector: 'metadata.name=x' }],
    ],
  );
  assert.deepEqual(watches.update(services), []);
  assert.deepEqual(namesOf(watches.update([service('a', 'x'), service('b', 'z')])), ['shop/z']);
  assert.deepEqual(
    added.map(({ ending }) => ending.signal.aborted),
    [true, false],
  );
});

test('bounds the ConfigMaps of a namespace, and keeps the ones that are watched', () => {
  const watches = create();
  const named = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => service(`${prefix}${index}`, `${prefix}${index}`));
  watches.update(named('p', 64));
  assert.deepEqual(watches.update([...named('a', 2), ...named('p', 64)]), []);
  const excess = [...(watches.unread() ?? [])].flatMap(([path, reason]) => (reason === 'too-many' ? [path] : []));
  assert.deepEqual(excess, ['shop/a0', 'shop/a1']);
  assert.deepEqual(namesOf(watches.update([...named('a', 2), ...named('p', 63)])), ['shop/a0']);
});

test('names the Services that wait until their ConfigMap is read', () => {
  const watches = create();
  const [a, b] = [service('a', 'x'), service('b', 'y')];
  const [first] = watches.update([a, b]);
  assert.ok(first);
  assert.deepEqual([...watches.waitingServices()], [a, b]);
  first.cache.listStarted();
  first.cache.listCompleted();
  assert.deepEqual([...watches.waitingServices()], [b]);
  assert.deepEqual([...(watches.unread() ?? [])], [['shop/y', 'waiting']]);
});
