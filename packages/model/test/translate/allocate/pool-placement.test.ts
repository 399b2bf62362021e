import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type TenantGrants, type TenantPolicyObject, UNRESTRICTED_GRANTS } from '@weir/model';
import { namespace, node, policy, port, service } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../../fixtures/translation.ts';

const many = Array.from({ length: 6 }, (_, index) => node(`n${index + 1}`, `192.0.2.${index + 1}`));
const edge = (name: string, ip: string): (typeof many)[number] =>
  node(name, ip, { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
const granting = (grants: Partial<TenantGrants>): TenantPolicyObject =>
  policy('shops', { grants: { ...UNRESTRICTED_GRANTS, ...grants } });
const degradedOf = (translation: ReturnType<typeof translateFresh>, path: string): string[] =>
  statusOf(translation, path).degraded.map(({ reason }) => reason);

describe('number of nodes', () => {
  test('places a Service on two nodes, and all Services of one tenant on the same nodes', () => {
    const translation = translateFresh({
      nodes: many,
      services: [service('a/web'), service('a/api', { ports: [port(81)] }), service('b/web')],
    });
    assert.equal(statusOf(translation, 'a/web').nodes.length, 2);
    assert.deepEqual(statusOf(translation, 'a/web').nodes, statusOf(translation, 'a/api').nodes);
    assert.deepEqual(degradedOf(translation, 'a/web'), []);
  });

  test('spreads 40 tenants so that at most a third share both nodes', () => {
    const names = Array.from({ length: 40 }, (_, index) => `t${index}`);
    const translation = translateFresh({
      nodes: many,
      services: names.map((name, index) => service(`${name}/web`, { ports: [port(1_000 + index)] })),
    });
    const pairs = names.map((name) => statusOf(translation, `${name}/web`).nodes.join());
    for (const pair of pairs) assert.ok(pairs.filter((each) => each === pair).length <= 13, pair);
    assert.equal(new Set(pairs.flatMap((pair) => pair.split(','))).size, many.length);
  });

  test('gives port 443 to each tenant once before a tenant gets it on a second node', () => {
    const nodes = many.slice(0, 3);
    const web = (tenant: string): ReturnType<typeof service> => service(`${tenant}/web`, { ports: [port(443)] });
    const two = translateFresh({ nodes, services: [web('a'), web('b')] });
    assert.deepEqual([statusOf(two, 'a/web').nodes.length, statusOf(two, 'b/web').nodes.length], [2, 1]);
    const four = translateFresh({ nodes, services: [web('a'), web('b'), web('c'), web('d')] });
    for (const path of ['a/web', 'b/web', 'c/web']) assert.equal(statusOf(four, path).nodes.length, 1);
    assert.equal(reasonOf(four, 'd/web'), 'PortConflict');
    assert.match(messageOf(four, 'd/web'), /443\/TCP is taken by another tenant on the 3 nodes of the fleet/);
  });

  test('gives a new node, or a node that is released, to a Service without a node before it is a second node', () => {
    const web = (tenant: string): ReturnType<typeof service> => service(`${tenant}/web`, { ports: [port(443)] });
    const services = [web('a'), web('b'), web('c')];
    const one = translateFresh({ nodes: many.slice(0, 1), services });
    assert.deepEqual([reasonOf(one, 'a/web'), reasonOf(one, 'b/web')], ['Accepted', 'PortConflict']);
    const two = translateAfter(one, { nodes: many.slice(0, 2), services });
    assert.deepEqual([statusOf(two, 'a/web').nodes, statusOf(two, 'b/web').nodes], [['n1'], ['n2']]);
    const released = translateAfter(two, { nodes: many.slice(0, 2), services: services.slice(1) });
    assert.deepEqual([statusOf(released, 'b/web').nodes, statusOf(released, 'c/web').nodes], [['n2'], ['n1']]);
    const alone = translateAfter(released, { nodes: many.slice(0, 2), services: services.slice(2) });
    assert.deepEqual(statusOf(alone, 'c/web').nodes, ['n1', 'n2']);
  });

  test('prefers the annotation to the policy, and the policy to the fleet', () => {
    const translation = translateFresh({
      nodes: many,
      namespaces: [namespace('a'), namespace('b')],
      policies: [granting({ nodesPerService: 3 })],
      services: [service('a/web'), service('b/web', { ports: [port(81)], annotations: { 'weir.dev/nodes': '5' } })],
    });
    assert.equal(statusOf(translation, 'a/web').nodes.length, 3);
    assert.equal(statusOf(translation, 'b/web').nodes.length, 5);
  });

  test('bounds the annotation by maxNodesPerService, which is nodesPerService by default', () => {
    const greedy = service('a/web', { annotations: { 'weir.dev/nodes': '5' } });
    const nodesWith = (grants: Partial<TenantGrants>): [number, string[]] => {
      const parts = { nodes: many, namespaces: [namespace('a')], services: [greedy], policies: [granting(grants)] };
      const status = statusOf(translateFresh(parts), 'a/web');
      return [status.nodes.length, status.degraded.map(({ message }) => message)];
    };
    const refused = (count: string): string =>
      `served on ${count[0]} of 5 requested nodes: tenant "a" may have at most ${count} for each Service; request fewer with annotation weir.dev/nodes, or ask for a higher maxNodesPerService in TenantPolicy "shops"`;
    assert.deepEqual(nodesWith({ nodesPerService: 1, maxNodesPerService: null }), [1, [refused('1 node')]]);
    assert.deepEqual(nodesWith({ nodesPerService: null, maxNodesPerService: null }), [2, [refused('2 nodes')]]);
    assert.deepEqual(nodesWith({ nodesPerService: 1, maxNodesPerService: 3 }), [3, [refused('3 nodes')]]);
    assert.deepEqual(nodesWith({ nodesPerService: 1, maxNodesPerService: 5 }), [5, []]);
  });

  test('counts a port once for each node, and gives fewer nodes if the limit of ports leaves too little', () => {
    const policies = [policy('shop', { limits: { ports: 5 } })];
    const pair = { ports: [port(80), port(443, { name: 'tls' })] };
    const web = service('shop/web', { createdAt: 1, ...pair });
    const api = service('shop/api', { createdAt: 2, ports: [port(81)] });
    const all = { nodes: many, namespaces: [namespace('shop')], policies };
    const both = translateFresh({ ...all, services: [web, api] });
    assert.deepEqual([statusOf(both, 'shop/web').nodes.length, statusOf(both, 'shop/api').nodes.length], [2, 1]);
    assert.equal(
      statusOf(both, 'shop/api').degraded[0]?.message,
      'served on 1 of 2 requested nodes: tenant "shop" may have 5 listener ports, and each port counts once for each node; use fewer ports, request fewer nodes with annotation weir.dev/nodes, or ask for a higher limit in TenantPolicy "shop"',
    );
    const third = { ...web, ports: [...pair.ports, port(8443, { name: 'more' })] };
    const grown = translateAfter(both, { ...all, services: [third, api] });
    assert.match(messageOf(grown, 'shop/web'), /^port 8443\/TCP: 5 of 5 listener ports .* are in use/);
    const alone = translateAfter(grown, { ...all, services: [api] });
    assert.equal(statusOf(alone, 'shop/api').nodes.length, 2);
  });

  test('accepts fewer nodes than requested, with a warning', () => {
    const translation = translateFresh({ services: [service('a/web')] });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    assert.deepEqual(degradedOf(translation, 'a/web'), ['FewerNodes']);
    assert.match(statusOf(translation, 'a/web').degraded[0]?.message ?? '', /1 of 2 requested nodes/);
  });

  test('keeps the nodes of a Service when nodes are added, and replaces a removed node', () => {
    const few = many.slice(0, 3);
    const before = translateFresh({ nodes: few, services: [service('a/web')] });
    const nodesBefore = statusOf(before, 'a/web').nodes;
    const grown = translateAfter(before, { nodes: many, services: [service('a/web')] });
    assert.deepEqual(statusOf(grown, 'a/web').nodes, nodesBefore);
    const [removed] = nodesBefore;
    const shrunk = translateAfter(grown, {
      nodes: many.filter(({ name }) => name !== removed),
      services: [service('a/web')],
    });
    assert.equal(statusOf(shrunk, 'a/web').nodes.length, 2);
    assert.ok(statusOf(shrunk, 'a/web').nodes.includes(nodesBefore[1] ?? ''));
  });

  test('releases nodes when a Service requests fewer, and gives them to the waiting Service', () => {
    const nodes = many.slice(0, 2);
    const waiting = service('b/web');
    const first = translateFresh({ nodes, services: [service('a/web', { createdAt: 1 })] });
    const before = translateAfter(first, { nodes, services: [service('a/web', { createdAt: 1 }), waiting] });
    assert.equal(reasonOf(before, 'b/web'), 'PortConflict');
    const modest = service('a/web', { createdAt: 1, annotations: { 'weir.dev/nodes': '1' } });
    const after = translateAfter(before, { nodes, services: [modest, waiting] });
    assert.equal(statusOf(after, 'a/web').nodes.length, 1);
    assert.equal(statusOf(after, 'b/web').nodes.length, 1);
    assert.notDeepEqual(statusOf(after, 'a/web').nodes, statusOf(after, 'b/web').nodes);
  });

  test('refuses ports that are free only on different nodes, with the owner of each port', () => {
    const nodes = many.slice(0, 2);
    const one = { 'weir.dev/nodes': '1' };
    const before = translateFresh({ nodes, services: [service('a/web', { annotations: one })] });
    const other = nodes.filter(({ name }) => !statusOf(before, 'a/web').nodes.includes(name));
    const second = translateAfter(before, {
      nodes: other,
      services: [service('b/api', { annotations: one, ports: [port(81)] })],
    });
    const combined = {
      ...before,
      table: { entries: new Map([...before.table.entries, ...second.table.entries]) },
    };
    const after = translateAfter(combined, {
      nodes,
      services: [
        service('a/web', { annotations: one }),
        service('b/api', { annotations: one, ports: [port(81)] }),
        service('a/both', { ports: [port(80), port(81, { name: 'other' })] }),
      ],
    });
    assert.equal(reasonOf(after, 'a/both'), 'PortConflict');
    assert.match(
      messageOf(after, 'a/both'),
      /none of the 2 nodes .* \(taken: 80\/TCP by Service a\/web on 1 node, 81\/TCP by another tenant on 1 node\)/,
    );
  });

  test('puts no new Service on a cordoned node, and keeps the present Services', () => {
    const [first, second] = [many[0], many[1]] as [(typeof many)[number], (typeof many)[number]];
    const before = translateFresh({ nodes: [first], services: [service('a/web')] });
    const cordoned = [{ ...first, unschedulable: true }, second];
    const after = translateAfter(before, {
      nodes: cordoned,
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80', 'n2:80']);
    assert.deepEqual(portsOf(after, 'b/web'), ['n2:81']);
  });

  for (const value of ['0', '17', '-1', '1.5', 'two', '']) {
    test(`refuses "${value}" nodes with the allowed values`, () => {
      const translation = translateFresh({
        services: [service('a/web', { annotations: { 'weir.dev/nodes': value } })],
      });
      assert.equal(reasonOf(translation, 'a/web'), 'InvalidAnnotation');
      assert.match(messageOf(translation, 'a/web'), /weir\.dev\/nodes: .* use a whole number from 1 to 16/);
    });
  }
});

describe('pools', () => {
  const nodes = [node('n1', '192.0.2.1'), edge('e1', '192.0.2.11'), edge('e2', '192.0.2.12')];
  const wanting = (pool: string): ReturnType<typeof service> =>
    service('a/web', { annotations: { 'weir.dev/pool': pool } });

  test('uses only nodes of the default pool without a policy', () => {
    const translation = translateFresh({ nodes, services: [service('a/web')] });
    assert.deepEqual(statusOf(translation, 'a/web').nodes, ['n1']);
    assert.equal(statusOf(translation, 'a/web').pool, 'default');
  });

  test('uses the first pool of the policy for a Service that requests no pool', () => {
    const translation = translateFresh({
      nodes,
      namespaces: [namespace('a')],
      policies: [granting({ pools: ['edge', 'default'] })],
      services: [
        service('a/web'),
        service('a/api', { ports: [port(81)], annotations: { 'weir.dev/pool': 'default' } }),
      ],
    });
    assert.deepEqual(statusOf(translation, 'a/web').nodes, ['e1', 'e2']);
    assert.deepEqual(statusOf(translation, 'a/api').nodes, ['n1']);
  });

  test('refuses a pool that is not allowed, with the allowed pools', () => {
    const translation = translateFresh({ nodes, services: [wanting('edge')] });
    assert.equal(reasonOf(translation, 'a/web'), 'PoolNotAllowed');
    assert.match(messageOf(translation, 'a/web'), /tenant "a" may not use pool "edge", only default/);
    assert.deepEqual(portsOf(translation, 'a/web'), []);
  });

  test('keeps a served Service in its pool if the requested pool is not allowed', () => {
    const before = translateFresh({ nodes, services: [service('a/web')] });
    const after = translateAfter(before, { nodes, services: [wanting('edge')] });
    assert.equal(reasonOf(after, 'a/web'), 'PoolNotAllowed');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
  });

  test('moves a Service to the requested pool, and keeps its nodes until the pool has room', () => {
    const policies = [granting({ pools: ['default', 'edge'] })];
    const holders = ['x', 'y'].map((name) =>
      service(`b/${name}`, { annotations: { 'weir.dev/pool': 'edge', 'weir.dev/nodes': '1' } }),
    );
    const namespaces = [namespace('a'), namespace('b')];
    const before = translateFresh({ nodes, namespaces, policies, services: [service('a/web'), ...holders] });
    const full = translateAfter(before, { nodes, namespaces, policies, services: [wanting('edge'), ...holders] });
    assert.equal(reasonOf(full, 'a/web'), 'PortConflict');
    assert.match(messageOf(full, 'a/web'), /on the 2 nodes of pool "edge".*the Service stays on n1/);
    assert.deepEqual(portsOf(full, 'a/web'), ['n1:80']);
    const free = translateAfter(full, { nodes, namespaces, policies, services: [wanting('edge')] });
    assert.equal(reasonOf(free, 'a/web'), 'Accepted');
    assert.deepEqual(portsOf(free, 'a/web'), ['e1:80', 'e2:80']);
  });

  test('reports a pool without nodes with the labels to set', () => {
    const translation = translateFresh({
      nodes,
      namespaces: [namespace('a')],
      policies: [granting({ pools: ['none'] })],
      services: [service('a/web')],
    });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    const problem = translation.problems.find(({ code }) => code === 'NoNodes');
    assert.equal(problem?.subject, 'Service a/web');
    assert.match(problem.message, /pool "none"/);
  });
});

describe('allowed ports', () => {
  const policies = [
    granting({
      allowedPorts: [
        { from: 80, to: 80 },
        { from: 8_000, to: 8_999 },
      ],
    }),
  ];
  const namespaces = [namespace('a')];

  test('are served, including both ends of a range', () => {
    const ports = [80, 8_000, 8_999].map((number) => port(number, { name: `p${number}` }));
    const translation = translateFresh({ namespaces, policies, services: [service('a/web', { ports })] });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
  });

  test('are named in the refusal of another port', () => {
    const translation = translateFresh({ namespaces, policies, services: [service('a/web', { ports: [port(443)] })] });
    assert.equal(reasonOf(translation, 'a/web'), 'PortNotAllowed');
    assert.match(
      messageOf(translation, 'a/web'),
      /port 443\/TCP is not allowed: tenant "a" may have only 80, 8000-8999; use one of these ports, or ask the operator to allow the port in TenantPolicy "shops"/,
    );
  });

  test('are kept when the Service adds a port that is not allowed', () => {
    const before = translateFresh({ namespaces, policies, services: [service('a/web')] });
    const greedy = service('a/web', { ports: [port(80), port(443, { name: 'tls' })] });
    const after = translateAfter(before, { namespaces, policies, services: [greedy] });
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'PortNotAllowed');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
  });

  test('keep a served port that is no longer allowed, and report OverLimit', () => {
    const services = [service('a/web', { ports: [port(443)] })];
    const before = translateFresh({ namespaces, services });
    const after = translateAfter(before, { namespaces, policies, services });
    assert.equal(reasonOf(after, 'a/web'), 'Accepted');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:443']);
    assert.ok(degradedOf(after, 'a/web').includes('OverLimit'));
  });

  test('allow no port if the list is empty', () => {
    const none = [granting({ allowedPorts: [] })];
    const translation = translateFresh({ namespaces, policies: none, services: [service('a/web')] });
    assert.match(messageOf(translation, 'a/web'), /may have no ports at all; ask the operator to allow the port/);
  });
});
