import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeEntry, encodeEntry, entriesOf, parseSharedPort, UNRESTRICTED_GRANTS } from '@weir/model';
import {
  httpServiceOn,
  serviceOn,
  sharedPortSettings,
  sharersOf,
  translateFirst,
  translateLater,
} from '../../fixtures/shared-ports.ts';
import { node, policy, port, secret, team } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf } from '../../fixtures/translation.ts';

describe('a shared port', () => {
  test('is shared by two tenants on one node, each with its own hosts', () => {
    const translation = translateFirst({
      services: [serviceOn('a/web', 'web.shop.example'), serviceOn('b/web', 'a.b.example, *.b.example')],
    });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web n1:443']);
  });

  test('is refused without hosts, with the hosts that the tenant may name', () => {
    const translation = translateFirst({ services: [serviceOn('a/web', undefined), serviceOn('c/web', undefined)] });
    assert.equal(reasonOf(translation, 'a/web'), 'PortReserved');
    assert.match(
      messageOf(translation, 'a/web'),
      /port 443\/TCP is shared by host name: add annotation weir.dev\/hosts .*tenant "a" may use only the hosts \*\.shop\.example, api\.example\), and for this port weir.dev\/tls-passthrough: "true", weir.dev\/tls-secret or appProtocol: http, or use another port/,
    );
    assert.match(
      messageOf(translation, 'c/web'),
      /"c" has no allowed hosts yet: ask the operator to allow hosts in the fleet's default policy/,
    );
    assert.deepEqual(portsOf(translation, 'a/web'), []);
  });

  test('is shared by Services with TLS passthrough and with TLS termination', () => {
    const ending = serviceOn('b/web', undefined, {
      more: { annotations: { 'weir.dev/tls-secret': 'tls', 'weir.dev/hosts': 'web.b.example' } },
    });
    const parts = {
      settings: { ...sharedPortSettings, secretAccess: { kind: 'cluster' } as const },
      secrets: [secret('b/tls')],
    };
    const translation = translateFirst({ ...parts, services: [serviceOn('a/web', 'web.shop.example'), ending] });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web n1:443']);
    const elsewhere = {
      ...ending,
      ports: [port(443), port(8443)],
      annotations: { ...ending.annotations, 'weir.dev/tls-ports': '8443' },
    };
    const moved = translateLater(translation, { ...parts, services: [elsewhere] });
    assert.equal(reasonOf(moved, 'b/web'), 'PortReserved', 'a port without TLS has no server name');
    assert.deepEqual(sharersOf(moved), ['uid-b-web n1:443'], 'the last accepted settings stay in effect');
  });

  test('does not include the UDP port of the same number', () => {
    const quic = serviceOn('c/web', undefined, { more: { ports: [port(443, { protocol: 'UDP' })] } });
    assert.equal(reasonOf(translateFirst({ services: [quic] }), 'c/web'), 'Accepted');
  });

  test('can be port 80 with appProtocol http, because requests name their host', () => {
    const settings = { ...sharedPortSettings, sharedPorts: [80] };
    const plain = [serviceOn('a/web', 'web.shop.example', { ports: [80] })];
    const refused = translateFirst({ settings, services: plain });
    assert.equal(reasonOf(refused, 'a/web'), 'PortReserved');
    assert.match(
      messageOf(refused, 'a/web'),
      /add annotation weir.dev\/hosts .*, and set appProtocol: http for this port/,
    );
    const services = [httpServiceOn('a/web', 'web.shop.example'), httpServiceOn('b/web', 'x.b.example')];
    const translation = translateFirst({ settings, services });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:80', 'uid-b-web n1:80']);
  });

  test('leaves the other ports of a Service exclusive', () => {
    const translation = translateFirst({
      services: [
        serviceOn('a/web', 'web.shop.example', { ports: [443, 8443] }),
        serviceOn('b/web', 'b.b.example', { ports: [8443] }),
      ],
    });
    assert.equal(reasonOf(translation, 'b/web'), 'PortConflict');
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443']);
  });

  test('counts as one port for each Service', () => {
    const limited = policy('a', {
      namespaceSelector: team('a'),
      grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.shop.example'] },
      limits: { ports: 1 },
    });
    const services = [serviceOn('a/one', 'one.shop.example'), serviceOn('a/two', 'two.shop.example')];
    const translation = translateFirst({ policies: [limited], services });
    assert.deepEqual([reasonOf(translation, 'a/one'), reasonOf(translation, 'a/two')], ['Accepted', 'QuotaExceeded']);
  });
});

describe('a port that becomes shared', () => {
  const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];
  const unshared = { ...sharedPortSettings, sharedPorts: [] };
  const one = { annotations: { 'weir.dev/nodes': '1' } };

  test('stays exclusive for its owner on the present nodes, with a warning', () => {
    const services = [serviceOn('c/web', undefined, { more: { annotations: { 'weir.dev/nodes': '2' } } })];
    const before = translateFirst({ settings: unshared, nodes: nodes.slice(0, 1), services });
    const after = translateLater(before, { nodes, services: [...services, serviceOn('a/web', 'x.shop.example')] });
    assert.equal(reasonOf(after, 'c/web'), 'Accepted');
    assert.deepEqual(portsOf(after, 'c/web'), ['n1:443']);
    const over = statusOf(after, 'c/web').degraded.find(({ reason }) => reason === 'OverLimit');
    assert.match(over?.message ?? '', /port 443\/TCP is now shared by host name/);
    assert.deepEqual(sharersOf(after), ['uid-a-web n2:443']);
  });

  test('becomes shared when its owner names allowed hosts', () => {
    const before = translateFirst({ settings: unshared, services: [serviceOn('a/web', undefined, { more: one })] });
    const after = translateLater(before, {
      services: [serviceOn('a/web', 'x.shop.example', { more: one }), serviceOn('b/web', 'y.shop.example')],
    });
    assert.equal(reasonOf(after, 'a/web'), 'Accepted');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443', 'uid-b-web n1:443']);
  });

  test('stays exclusive when all nodes go and come back, even with a new controller', () => {
    const services = [serviceOn('c/web', undefined, { ports: [443, 8443] })];
    const before = translateFirst({ settings: unshared, services });
    const shared = translateLater(before, { services });
    const without = translateLater(shared, { nodes: [], services });
    assert.equal(reasonOf(without, 'c/web'), 'Accepted');
    const back = translateLater(without, { services: [...services, serviceOn('a/web', 'x.shop.example')] });
    assert.deepEqual(statusOf(back, 'c/web').ports, statusOf(shared, 'c/web').ports);
    assert.deepEqual(portsOf(back, 'c/web'), portsOf(before, 'c/web'));
    assert.equal(reasonOf(back, 'a/web'), 'PortConflict');
    const again = translateLater(back, { services: [serviceOn('c/web', undefined, { ports: [8443] })] });
    const regained = translateLater(again, { services });
    assert.equal(statusOf(regained, 'c/web').ports[0]?.error?.reason, 'PortReserved', 'what was given up is gone');
  });

  test('stays exclusive while the named hosts are not allowed', () => {
    const services = [serviceOn('c/web', 'c.example')];
    const before = translateFirst({ settings: unshared, services });
    const after = translateLater(before, { services });
    assert.equal(reasonOf(after, 'c/web'), 'HostNotAllowed');
    assert.deepEqual(portsOf(after, 'c/web'), ['n1:443']);
    assert.deepEqual(sharersOf(after), []);
  });

  test('stays shared by its sharers when the fleet no longer shares it', () => {
    const services = [serviceOn('a/web', 'x.shop.example'), serviceOn('b/web', 'y.shop.example')];
    const before = translateFirst({ services });
    const after = translateLater(before, {
      settings: unshared,
      services: [...services, serviceOn('c/web', undefined)],
    });
    assert.deepEqual(sharersOf(after), sharersOf(before));
    assert.equal(reasonOf(after, 'c/web'), 'PortConflict');
    const free = translateLater(after, { settings: unshared, services: [serviceOn('c/web', undefined)] });
    assert.equal(reasonOf(free, 'c/web'), 'Accepted');
  });

  test('keeps the hosts of a Service that removes its hosts annotation', () => {
    const before = translateFirst({ services: [serviceOn('a/web', 'x.shop.example')] });
    const after = translateLater(before, { services: [serviceOn('a/web', undefined)] });
    assert.equal(reasonOf(after, 'a/web'), 'PortReserved');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443']);
  });
});

test('encodes a shared listener in a version that older readers skip', () => {
  const [entry] = entriesOf(translateFirst({ services: [serviceOn('a/web', 'x.shop.example')] }).table, 'listener');
  assert.ok(entry);
  assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
  assert.equal(JSON.parse(encodeEntry(entry)).v, 2);
  const { shared: _whole, ...alone } = entry;
  assert.equal(JSON.parse(encodeEntry(alone)).v, 1);
});

test('accepts as shared ports only TCP ports without a built-in reservation', () => {
  assert.deepEqual(
    ['443', '1', '65535', '0', '22', '30000', '65536', '443.0', '', ' 443', 'https'].map(parseSharedPort),
    [443, 1, 65_535, ...Array(8).fill(undefined)],
  );
});
