import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  atomicGroupsFor,
  type Change,
  createMatcher,
  DEFAULT_SERVICE_SETTINGS,
  diff,
  type Entry,
  endpointsId,
  listenerId,
  movedResources,
  nodeId,
  serviceId,
  sharedListenerId,
  tableOf,
} from '@weir/model';

describe('atomic groups', () => {
  test('contain all changes of one Service, with the node first', () => {
    const changes = [endpoints('a'), endpoints('b'), listener(1, 'a'), listener(2, 'b'), node, service('a')].map(put);
    assert.deepEqual(told(atomicGroupsFor(changes, [])), [
      { services: [], ids: [node.id] },
      { services: ['a'], ids: [endpoints('a').id, listener(1, 'a').id, serviceId('a')] },
      { services: ['b'], ids: [endpoints('b').id, listener(2, 'b').id] },
    ]);
  });

  test('join Services that pass listeners to each other, also in a ring', () => {
    const changes = [listener(1, 'b'), listener(2, 'c'), listener(3, 'a'), service('d')].map(put);
    const holders = [
      [listener(1, 'a').id, 'a'],
      [listener(2, 'b').id, 'b'],
      [listener(3, 'c').id, 'c'],
    ] as const;
    assert.deepEqual(
      atomicGroupsFor(changes, holders).map(({ services }) => [...services].sort()),
      [['a', 'b', 'c'], ['d']],
    );
  });

  test('delete a listener together with the other changes of its Service', () => {
    const { id } = listener(1, 'a');
    const changes: Change[] = [{ kind: 'delete', id }, put(service('b')), { kind: 'delete', id: serviceId('a') }];
    assert.deepEqual(told(atomicGroupsFor(changes, [[id, 'a']])), [
      { services: ['a'], ids: [id, serviceId('a')] },
      { services: ['b'], ids: [serviceId('b')] },
    ]);
  });

  test('join Services that pass a host of a shared port to each other, also by a wildcard', () => {
    const before = tableOf([...sharing('a', ['x.example']), ...sharing('b', []), ...sharing('c', ['y.example'])]);
    const matcher = createMatcher(before, 'n1');
    const stepsTo = (...entries: Entry[]): string[][] => {
      const changes = diff(before, tableOf(entries));
      return atomicGroupsFor(changes, movedResources(matcher, changes)).map(({ services }) => [...services].sort());
    };
    assert.deepEqual(
      stepsTo(...sharing('a', []), ...sharing('b', ['x.example']), ...sharing('c', ['y.example', 'z.example'])),
      [['a', 'b'], ['c']],
    );
    assert.deepEqual(stepsTo(...sharing('b', ['x.example']), ...sharing('c', [])), [['a', 'b'], ['c']], 'a is gone');
    assert.deepEqual(
      stepsTo(...sharing('a', []), ...sharing('b', ['*.example']), ...sharing('c', ['y.example', 'z.test'])),
      [['a', 'b'], ['c']],
    );
  });

  test('contain only the last of several changes of one entry', () => {
    const { id } = listener(1, 'a');
    assert.deepEqual(atomicGroupsFor([put(listener(1, 'a')), { kind: 'delete', id }], [[id, 'a']]), [
      { services: ['a'], changes: [{ kind: 'delete', id }] },
    ]);
  });
});

const told = (steps: ReturnType<typeof atomicGroupsFor>): unknown[] =>
  steps.map(({ services, changes }) => ({
    services,
    ids: changes.map((change) => (change.kind === 'put' ? change.entry.id : change.id)),
  }));

const put = (entry: Entry): Change => ({ kind: 'put', entry });

const node: Entry = {
  kind: 'node',
  id: nodeId('n1'),
  name: 'n1',
  bindAddresses: [],
  publishedAddresses: [],
  zone: null,
  pool: 'default',
};

function listener(port: number, uid: string): Entry {
  const at = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port } as const;
  return { kind: 'listener', id: listenerId(at), ...at, service: uid };
}

function endpoints(uid: string): Entry {
  const of = { service: uid, protocol: 'TCP', port: 80 } as const;
  return { kind: 'endpoints', id: endpointsId(of, 's', 0), ...of, endpoints: [], unready: 0 };
}

function sharing(uid: string, hosts: readonly string[]): Entry[] {
  const at = { node: 'n1', address: '192.0.2.1', protocol: 'TCP', port: 443, service: uid } as const;
  const listener: Entry = { kind: 'listener', id: sharedListenerId(at), ...at, shared: true };
  return [listener, { ...service(uid), settings: { ...DEFAULT_SERVICE_SETTINGS, hosts } } as Entry];
}

function service(uid: string): Entry {
  return {
    kind: 'service',
    id: serviceId(uid),
    uid,
    namespace: 'shop',
    name: uid,
    tenant: 'shop',
    accepted: { reason: 'Accepted', message: '' },
    degraded: [],
    settings: DEFAULT_SERVICE_SETTINGS,
    ports: [],
    pool: 'default',
    nodes: ['n1'],
  };
}
