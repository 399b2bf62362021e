// For one port thousands of Services may wait: who gets it next is not to cost as much as asking all of them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceObject } from '@weir/model';
import { namespace, node, port, service, snapshotOf } from '../build/snapshot.ts';
import { startWatched } from '../build/watched-world.ts';

const WAITING = 200;
const nameAt = (index: number): string => `s${String(index).padStart(3, '0')}`;
/** Each of a tenant of its own, and as old as its number is low. */
const serviceAt = (index: number, change: Partial<ServiceObject> = {}): ServiceObject =>
  service(`${nameAt(index)}/${nameAt(index)}`, { createdAt: index, ports: [port(8443)], ...change });
const without = (name: string) => (services: readonly ServiceObject[]) => services.filter((each) => each.name !== name);

function startCrowd(
  nodes: Parameters<typeof snapshotOf>[0]['nodes'],
  change: (index: number) => Partial<ServiceObject> = () => ({}),
) {
  const indices = Array.from({ length: WAITING }, (_, index) => index);
  return startWatched(
    snapshotOf({
      ...(nodes !== undefined && { nodes }),
      namespaces: indices.map((index) => namespace(nameAt(index))),
      services: indices.map((index) => serviceAt(index, change(index))),
    }),
  );
}

describe('a port for which many wait', () => {
  test('goes to the first of them when it is given up, and nobody else is asked', () => {
    const world = startCrowd([node('n1', '192.0.2.1')]);
    const told = world.accepted('s100');
    assert.match(told, /^port 8443\/TCP is taken by another tenant on the only node/);
    assert.deepEqual(world.step(without('s000')), { looked: ['s001'], changed: ['s001'] });
    assert.deepEqual(world.step(without('s001')), { looked: ['s002'], changed: ['s002'] });
    assert.deepEqual(world.step(without('s150')), { looked: [], changed: [] });
    assert.equal(world.accepted('s100'), told);
  });

  test('goes to as many as there are nodes for', () => {
    const world = startCrowd(
      ['1', '2', '3', '4'].map((each) => node(`n${each}`, `192.0.2.${each}`)),
      () => ({
        annotations: { 'weir.dev/nodes': '2' },
      }),
    );
    const [first = '', second = ''] = world.serving();
    assert.deepEqual([first, second], ['s000', 's001']);
    assert.deepEqual(world.step(without('s000')).changed, ['s002']);
    assert.deepEqual(world.serving(), ['s001', 's002']);
  });

  test('goes past those who need more than it', () => {
    const world = startCrowd([node('n1', '192.0.2.1')], (index) =>
      index === 1
        ? { ports: [port(8443, { name: 'a' }), port(9443, { name: 'b' })] }
        : index === 2
          ? { ports: [port(9443)] }
          : {},
    );
    assert.deepEqual(world.serving(), ['s000', 's002']);
    const { looked, changed } = world.step(without('s000'));
    assert.deepEqual(world.serving(), ['s002', 's003']);
    assert.deepEqual(changed, ['s003']);
    assert.deepEqual(looked, ['s001', 's003'], 's001 has only one port in its way for a moment');
  });
});
