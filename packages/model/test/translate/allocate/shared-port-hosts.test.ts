import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, type ServiceObject, UNRESTRICTED_GRANTS } from '@weir/model';
import {
  policyWithHosts,
  serviceOn,
  sharedPortSettings,
  sharersOf,
  translateFirst,
  translateLater,
} from '../../fixtures/shared-ports.ts';
import { node, policy, team } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf } from '../../fixtures/translation.ts';

describe('hosts that are not allowed', () => {
  test('refuse a new Service, and name the host, the tenant, the allowed hosts and the policy to ask for', () => {
    const translation = translateFirst({ services: [serviceOn('a/web', 'ok.shop.example, shop.example')] });
    assert.equal(reasonOf(translation, 'a/web'), 'HostNotAllowed');
    assert.equal(
      messageOf(translation, 'a/web'),
      'host shop.example is not allowed: tenant "a" may use only *.shop.example, api.example on shared ports; use other hosts in annotation weir.dev/hosts, or ask the operator to allow the host in TenantPolicy "a"',
    );
    assert.deepEqual(sharersOf(translation), []);
  });

  test('are all hosts if no policy allows any', () => {
    const translation = translateFirst({ services: [serviceOn('c/web', 'c.example')] });
    assert.match(
      messageOf(translation, 'c/web'),
      /may use no hosts on .*; ask the operator to allow the host in the fleet's default policy/,
    );
  });

  test('do not matter on an exclusive port', () => {
    const translation = translateFirst({ services: [serviceOn('c/web', 'c.example', { ports: [8443] })] });
    assert.equal(reasonOf(translation, 'c/web'), 'Accepted');
  });

  test('leave a served Service with its present hosts', () => {
    const before = translateFirst({ services: [serviceOn('a/web', 'web.shop.example')] });
    const after = translateLater(before, { services: [serviceOn('a/web', 'web.shop.example, other.example')] });
    assert.equal(reasonOf(after, 'a/web'), 'HostNotAllowed');
    assert.deepEqual(sharersOf(after), sharersOf(before));
    const [entry] = entriesOf(after.table, 'service');
    assert.deepEqual(entry?.settings?.hosts, ['web.shop.example']);
  });

  test('stay in effect on present ports if they were allowed before, but not on new ports', () => {
    const both = { ...sharedPortSettings, sharedPorts: [443, 8443] };
    const before = translateFirst({ settings: both, services: [serviceOn('a/web', 'web.shop.example')] });
    const grown = [serviceOn('a/web', 'web.shop.example', { ports: [443, 8443] })];
    const after = translateLater(before, {
      settings: both,
      policies: [policyWithHosts('a', ['api.example'])],
      services: grown,
    });
    assert.equal(reasonOf(after, 'a/web'), 'HostNotAllowed');
    assert.deepEqual(sharersOf(after), ['uid-a-web n1:443']);
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'HostNotAllowed');
  });

  test('include a list of more than 100 hosts', () => {
    const many = Array.from({ length: 101 }, (_, index) => `h${index}.shop.example`).join();
    assert.match(
      messageOf(translateFirst({ services: [serviceOn('a/web', many)] }), 'a/web'),
      /names 101 hosts, .* at most 100/,
    );
  });

  test('are the reason of the port error, instead of missing hosts', () => {
    const wrong = { 'weir.dev/algorithm': 'fastest' };
    const translation = translateFirst({
      services: [
        serviceOn('a/web', 'shop.example'),
        serviceOn('b/web', 'x.b.example', { more: { annotations: wrong } }),
      ],
    });
    assert.equal(statusOf(translation, 'a/web').ports[0]?.error?.reason, 'HostNotAllowed');
    assert.equal(reasonOf(translation, 'b/web'), 'InvalidAnnotation');
    assert.equal(statusOf(translation, 'b/web').ports[0]?.error, null);
  });

  test('do not block other Services, and a shorter list is accepted', () => {
    const many = Array.from({ length: 101 }, (_, index) => `h${index}.shop.example`);
    const before = translateFirst({
      services: [serviceOn('a/web', 'h0.shop.example'), serviceOn('b/web', 'h1.shop.example')],
    });
    const after = translateLater(before, {
      services: [serviceOn('a/web', many.join()), serviceOn('b/web', 'h1.shop.example')],
    });
    assert.deepEqual(sharersOf(after), sharersOf(before));
    const fewer = translateLater(after, { services: [serviceOn('a/web', 'h0.shop.example, h1.shop.example')] });
    assert.equal(reasonOf(fewer, 'a/web'), 'Accepted');
  });
});

describe('hosts that another Service owns', () => {
  test('refuse a new Service, and name the owner only within its tenant', () => {
    const services = [
      serviceOn('a/web', 'x.shop.example', { more: { createdAt: 1 } }),
      serviceOn('a/api', 'x.shop.example, y.shop.example', { more: { createdAt: 2 } }),
      serviceOn('b/web', 'x.shop.example', { more: { createdAt: 3 } }),
    ];
    const translation = translateFirst({ services });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    assert.equal(reasonOf(translation, 'a/api'), 'HostConflict');
    assert.equal(
      messageOf(translation, 'a/api'),
      'host x.shop.example on port 443/TCP of pool "default" is taken by Service a/web; to share the host by path, set appProtocol: http at port 443/TCP of both Services, without weir.dev/tls-passthrough, and another weir.dev/path-prefix for each; or use another host, or another port',
    );
    assert.match(messageOf(translation, 'b/web'), /is taken by another tenant; use/);
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443']);
  });

  test('are owned in the whole pool, not only on the nodes of the owner', () => {
    const nodes = [1, 2, 3, 4].map((index) => node(`n${index}`, `192.0.2.${index}`));
    const services = [serviceOn('a/web', 'x.shop.example'), serviceOn('b/web', 'x.shop.example')];
    assert.equal(reasonOf(translateFirst({ nodes, services }), 'b/web'), 'HostConflict');
  });

  test('are free in another pool', () => {
    const edge = node('e1', '192.0.2.9', { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
    const elsewhere = policy('b', {
      namespaceSelector: team('b'),
      grants: { ...UNRESTRICTED_GRANTS, pools: ['edge'], allowedHosts: ['*.shop.example'] },
    });
    const translation = translateFirst({
      nodes: [node('n1', '192.0.2.1'), edge],
      policies: [policyWithHosts('a', ['*.shop.example']), elsewhere],
      services: [serviceOn('a/web', 'x.shop.example'), serviceOn('b/web', 'x.shop.example')],
    });
    assert.deepEqual(sharersOf(translation), ['uid-a-web n1:443', 'uid-b-web e1:443']);
  });

  test('stay with their owner, and go to the oldest waiting Service when they are released', () => {
    const owner = serviceOn('a/web', 'x.shop.example', { more: { createdAt: 9 } });
    const older = serviceOn('b/web', 'x.shop.example', { more: { createdAt: 1 } });
    const oldest = serviceOn('a/api', 'x.shop.example', { more: { createdAt: 0 } });
    const before = translateFirst({ services: [owner] });
    const waiting = translateLater(before, { services: [owner, older, oldest] });
    assert.equal(reasonOf(waiting, 'a/web'), 'Accepted');
    const given = serviceOn('a/web', 'y.shop.example', { more: { createdAt: 9 } });
    const after = translateLater(waiting, { services: [given, older, oldest] });
    assert.deepEqual(
      ['a/web', 'b/web', 'a/api'].map((path) => reasonOf(after, path)),
      ['Accepted', 'HostConflict', 'Accepted'],
    );
  });

  test('leave a served Service with its present hosts', () => {
    const services = [serviceOn('a/web', 'x.shop.example'), serviceOn('b/web', 'y.shop.example')];
    const before = translateFirst({ services });
    const after = translateLater(before, {
      services: [serviceOn('a/web', 'x.shop.example'), serviceOn('b/web', 'x.shop.example')],
    });
    assert.equal(reasonOf(after, 'b/web'), 'HostConflict');
    const entry = entriesOf(after.table, 'service').find(
      ({ name, namespace: space }) => `${space}/${name}` === 'b/web',
    );
    assert.deepEqual(entry?.settings?.hosts, ['y.shop.example']);
    assert.deepEqual(sharersOf(after), sharersOf(before));
  });

  test('are refused on a new port, while the first port stays served', () => {
    const both = { ...sharedPortSettings, sharedPorts: [443, 8443] };
    const services = [serviceOn('a/web', 'x.shop.example', { ports: [8443] }), serviceOn('b/web', 'x.shop.example')];
    const before = translateFirst({ settings: both, services });
    const grown = [services[0] as ServiceObject, serviceOn('b/web', 'x.shop.example', { ports: [443, 8443] })];
    const after = translateLater(before, { settings: both, services: grown });
    assert.equal(statusOf(after, 'b/web').ports[1]?.error?.reason, 'HostConflict');
    assert.deepEqual(portsOf(after, 'b/web'), ['n1:443']);
  });

  test('do not conflict with the wildcard of another Service, because the exact host matches first', () => {
    const services = [serviceOn('a/web', '*.shop.example'), serviceOn('b/web', 'x.shop.example')];
    const translation = translateFirst({ services });
    assert.deepEqual([reasonOf(translation, 'a/web'), reasonOf(translation, 'b/web')], ['Accepted', 'Accepted']);
  });

  test('keep a Service on its nodes if they are taken in the requested pool', () => {
    const edge = node('e1', '192.0.2.9', { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
    const nodes = [node('n1', '192.0.2.1'), edge];
    const policies = ['a', 'b'].map((name) =>
      policy(name, {
        namespaceSelector: team(name),
        grants: { ...UNRESTRICTED_GRANTS, pools: ['default', 'edge'], allowedHosts: ['*.shop.example'] },
      }),
    );
    const inEdge = { annotations: { 'weir.dev/pool': 'edge' } };
    const owner = serviceOn('a/web', 'x.shop.example', { more: inEdge });
    const before = translateFirst({ nodes, policies, services: [owner, serviceOn('b/web', 'x.shop.example')] });
    const moving = serviceOn('b/web', 'x.shop.example', { more: inEdge });
    const after = translateLater(before, { nodes, policies, services: [owner, moving] });
    assert.equal(reasonOf(after, 'b/web'), 'HostConflict');
    assert.match(messageOf(after, 'b/web'), /of pool "edge" is taken by another tenant.*the Service stays on n1/);
    assert.deepEqual(portsOf(after, 'b/web'), ['n1:443']);
  });
});
