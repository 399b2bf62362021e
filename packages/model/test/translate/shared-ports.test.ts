import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  DEFAULT_SETTINGS,
  decodeEntry,
  encodeEntry,
  entriesOf,
  OPEN_GRANTS,
  parseSharedPort,
  type ServiceObject,
  type Snapshot,
  type Translation,
} from '@weir/model';
import { namespace, node, policy, port, secret, service, team } from '../build/snapshot.ts';
import { fresh, messageOf, next, portsOf, reasonOf, statusOf } from '../build/translation.ts';

const settings = { ...DEFAULT_SETTINGS, sharedPorts: [443], nodesPerService: 1 };
const granting = (name: string, allowedHosts: readonly string[]): Snapshot['policies'][number] =>
  policy(name, { namespaceSelector: team(name), grants: { ...OPEN_GRANTS, allowedHosts } });
/** Of a policy of its own; c may have no hosts. */
const world = {
  settings,
  namespaces: ['a', 'b', 'c'].map((name) => namespace(name, { team: name })),
  policies: [granting('a', ['*.shop.example', 'api.example']), granting('b', ['*.shop.example', '*.b.example'])],
};
const on = (
  path: string,
  hosts: string | undefined,
  { ports = [443], more = {} }: { readonly ports?: readonly number[]; readonly more?: Partial<ServiceObject> } = {},
): ServiceObject =>
  service(path, {
    ports: ports.map((number) => port(number, { name: `p${number}` })),
    ...more,
    annotations: {
      ...(hosts !== undefined && { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' }),
      ...more.annotations,
    },
  });
const first = (parts: Partial<Snapshot>): Translation => fresh({ ...world, ...parts });
const then = (before: Translation, parts: Partial<Snapshot>): Translation => next(before, { ...world, ...parts });
const sharersOf = (translation: Translation): string[] =>
  entriesOf(translation.table, 'listener')
    .filter(({ shared }) => shared === true)
    .map((listener) => `${listener.service} ${listener.node}:${listener.port}`)
    .sort();

describe('a port that the fleet shares', () => {
  test('is had by two tenants on one node, each with hosts of its own', () => {
    const translation = first({ services: [on('a/web', 'web.shop.example'), on('b/web', 'a.b.example, *.b.example')] });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web n1:443']);
  });

  test('is not had without hosts, and the message says what to do and which ones the tenant may name', () => {
    const translation = first({ services: [on('a/web', undefined), on('c/web', undefined)] });
    assert.equal(reasonOf(translation, 'a/web'), 'PortReserved');
    assert.match(
      messageOf(translation, 'a/web'),
      /port 443\/TCP is shared by host names: add annotation weir.dev\/hosts .*tenant "a" may have \*\.shop\.example, api\.example\), and weir.dev\/tls-passthrough: "true" or weir.dev\/tls-secret for this port, or use another port/,
    );
    assert.match(messageOf(translation, 'c/web'), /"c" has none yet: ask for some in the fleet's default policy/);
    assert.deepEqual(portsOf(translation, 'a/web'), []);
  });

  test('is had by those who pass TLS on and by those for whom it ends here, side by side', () => {
    const ending = on('b/web', undefined, {
      more: { annotations: { 'weir.dev/tls-secret': 'tls', 'weir.dev/hosts': 'web.b.example' } },
    });
    const parts = { settings: { ...settings, secretAccess: { kind: 'cluster' } as const }, secrets: [secret('b/tls')] };
    const translation = first({ ...parts, services: [on('a/web', 'web.shop.example'), ending] });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web n1:443']);
    const elsewhere = {
      ...ending,
      ports: [port(443), port(8443)],
      annotations: { ...ending.annotations, 'weir.dev/tls-ports': '8443' },
    };
    const moved = then(translation, { ...parts, services: [elsewhere] });
    assert.equal(reasonOf(moved, 'b/web'), 'PortReserved', 'where TLS does not end any more nobody gives a name');
    assert.deepEqual(sharersOf(moved), ['uid-b-web n1:443'], 'and what was accepted last serves on');
  });

  test('is another one than the UDP port of its number', () => {
    const quic = on('c/web', undefined, { more: { ports: [port(443, { protocol: 'UDP' })] } });
    assert.equal(reasonOf(first({ services: [quic] }), 'c/web'), 'Accepted');
  });

  test('is not 80 yet: nobody gives a server name there', () => {
    const services = [on('a/web', 'web.shop.example', { ports: [80, 443] })];
    const translation = first({ settings: { ...settings, sharedPorts: [80, 443] }, services });
    assert.equal(reasonOf(translation, 'a/web'), 'PortReserved');
    assert.match(messageOf(translation, 'a/web'), /port 80\/TCP .* knows those of TLS only/);
  });

  test('leaves the other ports of a Service to it alone', () => {
    const translation = first({
      services: [
        on('a/web', 'web.shop.example', { ports: [443, 8443] }),
        on('b/web', 'b.b.example', { ports: [8443] }),
      ],
    });
    assert.equal(reasonOf(translation, 'b/web'), 'PortConflict');
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443']);
  });

  test('counts as one port of each', () => {
    const limited = policy('a', {
      namespaceSelector: team('a'),
      grants: { ...OPEN_GRANTS, allowedHosts: ['*.shop.example'] },
      limits: { ports: 1 },
    });
    const services = [on('a/one', 'one.shop.example'), on('a/two', 'two.shop.example')];
    const translation = first({ policies: [limited], services });
    assert.deepEqual([reasonOf(translation, 'a/one'), reasonOf(translation, 'a/two')], ['Accepted', 'QuotaExceeded']);
  });
});

describe('hosts that are not allowed', () => {
  test('refuse a new Service, with the host, the tenant, what it may have and whom to ask', () => {
    const translation = first({ services: [on('a/web', 'ok.shop.example, shop.example')] });
    assert.equal(reasonOf(translation, 'a/web'), 'HostNotAllowed');
    assert.equal(
      messageOf(translation, 'a/web'),
      'host shop.example is not allowed: tenant "a" may have only *.shop.example, api.example on ports that are shared; use others in annotation weir.dev/hosts, or ask for it in TenantPolicy "a"',
    );
    assert.deepEqual(sharersOf(translation), []);
  });

  test('are those that no policy allows', () => {
    const translation = first({ services: [on('c/web', 'c.example')] });
    assert.match(
      messageOf(translation, 'c/web'),
      /may have no hosts at all .*; ask for it in the fleet's default policy/,
    );
  });

  test('are no matter on a port of the Service alone', () => {
    const translation = first({ services: [on('c/web', 'c.example', { ports: [8443] })] });
    assert.equal(reasonOf(translation, 'c/web'), 'Accepted');
  });

  test('leave a Service that serves with those that it has', () => {
    const before = first({ services: [on('a/web', 'web.shop.example')] });
    const after = then(before, { services: [on('a/web', 'web.shop.example, other.example')] });
    assert.equal(reasonOf(after, 'a/web'), 'HostNotAllowed');
    assert.deepEqual(sharersOf(after), sharersOf(before));
    const [entry] = entriesOf(after.table, 'service');
    assert.deepEqual(entry?.settings?.hosts, ['web.shop.example']);
  });

  test('that were allowed go on serving, and get no further port', () => {
    const both = { ...settings, sharedPorts: [443, 8443] };
    const before = first({ settings: both, services: [on('a/web', 'web.shop.example')] });
    const grown = [on('a/web', 'web.shop.example', { ports: [443, 8443] })];
    const after = then(before, { settings: both, policies: [granting('a', ['api.example'])], services: grown });
    assert.equal(reasonOf(after, 'a/web'), 'HostNotAllowed');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443']);
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'HostNotAllowed');
  });

  test('are also too many at once', () => {
    const many = Array.from({ length: 101 }, (_, index) => `h${index}.shop.example`).join();
    assert.match(messageOf(first({ services: [on('a/web', many)] }), 'a/web'), /names 101 hosts, .* at most 100/);
  });

  test('are what is wrong with the port, too, and never that it names none', () => {
    const wrong = { 'weir.dev/algorithm': 'fastest' };
    const translation = first({
      services: [on('a/web', 'shop.example'), on('b/web', 'x.b.example', { more: { annotations: wrong } })],
    });
    assert.equal(statusOf(translation, 'a/web').ports[0]?.error?.reason, 'HostNotAllowed');
    assert.equal(reasonOf(translation, 'b/web'), 'InvalidAnnotation');
    assert.equal(statusOf(translation, 'b/web').ports[0]?.error, null);
  });

  test('that are too many keep nobody from what it has, and fewer of them are waited for', () => {
    const many = Array.from({ length: 101 }, (_, index) => `h${index}.shop.example`);
    const before = first({ services: [on('a/web', 'h0.shop.example'), on('b/web', 'h1.shop.example')] });
    const after = then(before, { services: [on('a/web', many.join()), on('b/web', 'h1.shop.example')] });
    assert.deepEqual(sharersOf(after), sharersOf(before));
    const fewer = then(after, { services: [on('a/web', 'h0.shop.example, h1.shop.example')] });
    assert.equal(reasonOf(fewer, 'a/web'), 'Accepted');
  });
});

describe('hosts that another Service has', () => {
  test('refuse a new Service; the holder is named within its tenant only', () => {
    const services = [
      on('a/web', 'x.shop.example', { more: { createdAt: 1 } }),
      on('a/api', 'x.shop.example, y.shop.example', { more: { createdAt: 2 } }),
      on('b/web', 'x.shop.example', { more: { createdAt: 3 } }),
    ];
    const translation = first({ services });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    assert.equal(reasonOf(translation, 'a/api'), 'HostConflict');
    assert.equal(
      messageOf(translation, 'a/api'),
      'host x.shop.example on port 443/TCP of pool "default" is taken by Service a/web; use another host, or another port',
    );
    assert.match(messageOf(translation, 'b/web'), /is taken by another tenant; use/);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443']);
  });

  test('are theirs in the whole pool, not only on their nodes', () => {
    const nodes = [1, 2, 3, 4].map((index) => node(`n${index}`, `192.0.2.${index}`));
    const services = [on('a/web', 'x.shop.example'), on('b/web', 'x.shop.example')];
    assert.equal(reasonOf(first({ nodes, services }), 'b/web'), 'HostConflict');
  });

  test('are free in another pool', () => {
    const edge = node('e1', '192.0.2.9', { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
    const elsewhere = policy('b', {
      namespaceSelector: team('b'),
      grants: { ...OPEN_GRANTS, pools: ['edge'], allowedHosts: ['*.shop.example'] },
    });
    const translation = first({
      nodes: [node('n1', '192.0.2.1'), edge],
      policies: [granting('a', ['*.shop.example']), elsewhere],
      services: [on('a/web', 'x.shop.example'), on('b/web', 'x.shop.example')],
    });
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web e1:443']);
  });

  test('stay with who had them, whoever is older, and go to who waits first when they are given up', () => {
    const holder = on('a/web', 'x.shop.example', { more: { createdAt: 9 } });
    const older = on('b/web', 'x.shop.example', { more: { createdAt: 1 } });
    const oldest = on('a/api', 'x.shop.example', { more: { createdAt: 0 } });
    const before = first({ services: [holder] });
    const waiting = then(before, { services: [holder, older, oldest] });
    assert.equal(reasonOf(waiting, 'a/web'), 'Accepted');
    const given = on('a/web', 'y.shop.example', { more: { createdAt: 9 } });
    const after = then(waiting, { services: [given, older, oldest] });
    assert.deepEqual(
      ['a/web', 'b/web', 'a/api'].map((path) => reasonOf(after, path)),
      ['Accepted', 'HostConflict', 'Accepted'],
    );
  });

  test('leave a Service that serves with those that it has', () => {
    const services = [on('a/web', 'x.shop.example'), on('b/web', 'y.shop.example')];
    const before = first({ services });
    const after = then(before, { services: [on('a/web', 'x.shop.example'), on('b/web', 'x.shop.example')] });
    assert.equal(reasonOf(after, 'b/web'), 'HostConflict');
    const held = entriesOf(after.table, 'service').find(({ name, namespace: space }) => `${space}/${name}` === 'b/web');
    assert.deepEqual(held?.settings?.hosts, ['y.shop.example']);
    assert.deepEqual(sharersOf(after), sharersOf(before));
  });

  test('are refused on a further port, and the first one serves on', () => {
    const both = { ...settings, sharedPorts: [443, 8443] };
    const services = [on('a/web', 'x.shop.example', { ports: [8443] }), on('b/web', 'x.shop.example')];
    const before = first({ settings: both, services });
    const grown = [services[0] as ServiceObject, on('b/web', 'x.shop.example', { ports: [443, 8443] })];
    const after = then(before, { settings: both, services: grown });
    assert.equal(statusOf(after, 'b/web').ports[1]?.error?.reason, 'HostConflict');
    assert.deepEqual(portsOf(after, 'b/web'), ['n1:443']);
  });

  test('are no matter beside a wildcard that another has: the exact one is the nearer', () => {
    const services = [on('a/web', '*.shop.example'), on('b/web', 'x.shop.example')];
    const translation = first({ services });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
  });

  test('keep a Service where it is that asks for a pool where they are taken', () => {
    const edge = node('e1', '192.0.2.9', { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
    const nodes = [node('n1', '192.0.2.1'), edge];
    const policies = ['a', 'b'].map((name) =>
      policy(name, {
        namespaceSelector: team(name),
        grants: { ...OPEN_GRANTS, pools: ['default', 'edge'], allowedHosts: ['*.shop.example'] },
      }),
    );
    const inEdge = { annotations: { 'weir.dev/pool': 'edge' } };
    const holder = on('a/web', 'x.shop.example', { more: inEdge });
    const before = first({ nodes, policies, services: [holder, on('b/web', 'x.shop.example')] });
    const moving = on('b/web', 'x.shop.example', { more: inEdge });
    const after = then(before, { nodes, policies, services: [holder, moving] });
    assert.equal(reasonOf(after, 'b/web'), 'HostConflict');
    assert.match(messageOf(after, 'b/web'), /of pool "edge" is taken by another tenant.*it stays on n1/);
    assert.deepEqual(portsOf(after, 'b/web'), ['n1:443']);
  });
});

describe('a port that becomes one that the fleet shares', () => {
  const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];
  const unshared = { ...settings, sharedPorts: [] };
  const one = { annotations: { 'weir.dev/nodes': '1' } };

  test('stays with the Service that has it alone, on its nodes only, and it is said', () => {
    const services = [on('c/web', undefined, { more: { annotations: { 'weir.dev/nodes': '2' } } })];
    const before = first({ settings: unshared, nodes: nodes.slice(0, 1), services });
    const after = then(before, { nodes, services: [...services, on('a/web', 'x.shop.example')] });
    assert.equal(reasonOf(after, 'c/web'), 'Accepted');
    assert.deepEqual(portsOf(after, 'c/web'), ['n1:443']);
    const over = statusOf(after, 'c/web').degraded.find(({ reason }) => reason === 'OverLimit');
    assert.match(over?.message ?? '', /port 443\/TCP is shared by host names now/);
    assert.deepEqual(sharersOf(after), ['uid-a-web n2:443']);
  });

  test('is shared by it as soon as it names hosts that it may have', () => {
    const before = first({ settings: unshared, services: [on('a/web', undefined, { more: one })] });
    const after = then(before, {
      services: [on('a/web', 'x.shop.example', { more: one }), on('b/web', 'y.shop.example')],
    });
    assert.equal(reasonOf(after, 'a/web'), 'Accepted');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443', 'uid-b-web n1:443']);
  });

  test('stays with it alone also when all nodes go and come back, and the controller is another one by then', () => {
    const services = [on('c/web', undefined, { ports: [443, 8443] })];
    const before = first({ settings: unshared, services });
    const shared = then(before, { services });
    const without = then(shared, { nodes: [], services });
    assert.equal(reasonOf(without, 'c/web'), 'Accepted');
    const back = then(without, { services: [...services, on('a/web', 'x.shop.example')] });
    assert.deepEqual(statusOf(back, 'c/web').ports, statusOf(shared, 'c/web').ports);
    assert.deepEqual(portsOf(back, 'c/web'), portsOf(before, 'c/web'));
    assert.equal(reasonOf(back, 'a/web'), 'PortConflict');
    const again = then(back, { services: [on('c/web', undefined, { ports: [8443] })] });
    const regained = then(again, { services });
    assert.equal(statusOf(regained, 'c/web').ports[0]?.error?.reason, 'PortReserved', 'what was given up is gone');
  });

  test('stays with it alone while it may not have those that it names', () => {
    const services = [on('c/web', 'c.example')];
    const before = first({ settings: unshared, services });
    const after = then(before, { services });
    assert.equal(reasonOf(after, 'c/web'), 'HostNotAllowed');
    assert.deepEqual(portsOf(after, 'c/web'), ['n1:443']);
    assert.deepEqual(sharersOf(after), []);
  });

  test('and is one no longer, is shared on by those who share it', () => {
    const services = [on('a/web', 'x.shop.example'), on('b/web', 'y.shop.example')];
    const before = first({ services });
    const after = then(before, { settings: unshared, services: [...services, on('c/web', undefined)] });
    assert.deepEqual(sharersOf(after), sharersOf(before));
    assert.equal(reasonOf(after, 'c/web'), 'PortConflict');
    const free = then(after, { settings: unshared, services: [on('c/web', undefined)] });
    assert.equal(reasonOf(free, 'c/web'), 'Accepted');
  });

  test('is not had by a Service that takes its hosts away: it serves on with them', () => {
    const before = first({ services: [on('a/web', 'x.shop.example')] });
    const after = then(before, { services: [on('a/web', undefined)] });
    assert.equal(reasonOf(after, 'a/web'), 'PortReserved');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443']);
  });
});

test('a share of a place is left out by readers that know no shares', () => {
  const [entry] = entriesOf(first({ services: [on('a/web', 'x.shop.example')] }).table, 'listener');
  assert.ok(entry);
  assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
  assert.equal(JSON.parse(encodeEntry(entry)).v, 2);
  const { shared: _whole, ...alone } = entry;
  assert.equal(JSON.parse(encodeEntry(alone)).v, 1);
});

test('what can be shared is a port that the nodes do not need', () => {
  assert.deepEqual(
    ['443', '1', '65535', '0', '22', '30000', '65536', '443.0', '', ' 443', 'https'].map(parseSharedPort),
    [443, 1, 65_535, ...Array(8).fill(undefined)],
  );
});
