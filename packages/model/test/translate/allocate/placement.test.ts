import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { node, port, service } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../../fixtures/translation.ts';

describe('placement', () => {
  const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];

  test('binds the ports of a Service on every labelled node that is not excluded', () => {
    const translation = translateFresh({
      nodes: [
        ...nodes,
        node('n3', '192.0.2.3', { labels: {} }),
        node('n4', '192.0.2.4', {
          labels: { role: 'loadbalancer', 'node.kubernetes.io/exclude-from-external-load-balancers': '' },
        }),
      ],
      services: [service('a/web')],
    });
    assert.deepEqual(portsOf(translation, 'a/web'), ['n1:80', 'n2:80']);
  });

  test('gives a port that two Services request to the older Service, and reports the conflict to the other', () => {
    const translation = translateFresh({
      services: [service('a/late', { createdAt: 2 }), service('b/early', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(translation, 'b/early'), ['n1:80']);
    assert.deepEqual(portsOf(translation, 'a/late'), []);
    assert.equal(reasonOf(translation, 'a/late'), 'PortConflict');
    assert.match(messageOf(translation, 'a/late'), /port 80\/TCP is taken by another tenant on the only node/);
    assert.doesNotMatch(messageOf(translation, 'a/late'), /early/);
  });

  test('names the owner of a port to Services of the same tenant', () => {
    const translation = translateFresh({
      services: [service('a/one', { createdAt: 1 }), service('a/two', { createdAt: 2 })],
    });
    assert.match(messageOf(translation, 'a/two'), /Service a\/one on the only node/);
  });

  test('keeps the owner of a port when an older Service appears', () => {
    const before = translateFresh({ services: [service('a/owner', { createdAt: 5 })] });
    const after = translateAfter(before, {
      services: [service('a/owner', { createdAt: 5 }), service('b/older', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(after, 'a/owner'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/older'), 'PortConflict');
  });

  test('prefers a Service with a published address to an older Service when all allocations are lost', () => {
    const translation = translateFresh({
      services: [
        service('a/older', { createdAt: 1 }),
        service('b/published', { createdAt: 2, publishedIPs: ['192.0.2.1'] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'b/published'), ['n1:80']);
  });

  test('gives a released port to the Service that waits', () => {
    const both = [service('a/one', { createdAt: 1 }), service('b/two', { createdAt: 2 })];
    const before = translateFresh({ services: both });
    const after = translateAfter(before, { services: [service('b/two', { createdAt: 2 })] });
    assert.deepEqual(portsOf(after, 'b/two'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/two'), 'Accepted');
  });

  test('keeps the ports of a served Service that adds a taken port, and reports the refused port', () => {
    const owner = service('b/owner', { ports: [port(443)] });
    const before = translateFresh({ services: [service('a/web'), owner] });
    const after = translateAfter(before, { services: [service('a/web', { ports: [port(80), port(443)] }), owner] });
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
    assert.equal(reasonOf(after, 'a/web'), 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[0]?.error, null);
  });

  test('refuses all ports of a new Service if one port is taken', () => {
    const translation = translateFresh({
      services: [
        service('b/owner', { ports: [port(443)], createdAt: 1 }),
        service('a/web', { ports: [port(80), port(443)] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'a/web'), []);
    assert.equal(reasonOf(translation, 'a/web'), 'PortConflict');
  });

  test('refuses a reserved port', () => {
    const translation = translateFresh({ services: [service('a/ssh', { ports: [port(22)] })] });
    assert.equal(reasonOf(translation, 'a/ssh'), 'PortReserved');
  });

  test('gives TCP and UDP of one port number separate listeners, even to two Services', () => {
    const dns = [port(53, { name: 'tcp' }), port(53, { name: 'udp', protocol: 'UDP' })];
    const one = translateFresh({ services: [service('a/dns', { ports: dns })] });
    assert.deepEqual(portsOf(one, 'a/dns'), ['n1:53', 'n1:53']);
    assert.equal(reasonOf(one, 'a/dns'), 'Accepted');
    const two = translateFresh({
      services: dns.map((each) => service(`a/${each.name}`, { ports: [each] })),
    });
    assert.deepEqual([reasonOf(two, 'a/tcp'), reasonOf(two, 'a/udp')], ['Accepted', 'Accepted']);
  });

  test('refuses only the SCTP port of a Service with TCP ports, and all of a Service with only SCTP', () => {
    const mixed = [port(80), port(36_412, { name: 'sctp', protocol: 'SCTP' })];
    const translation = translateFresh({
      services: [
        service('a/mixed', { ports: mixed }),
        service('a/core', { ports: [port(38_412, { protocol: 'SCTP' })] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'a/mixed'), ['n1:80']);
    assert.equal(reasonOf(translation, 'a/mixed'), 'UnsupportedProtocol');
    assert.equal(reasonOf(translation, 'a/core'), 'UnsupportedProtocol');
    assert.deepEqual(portsOf(translation, 'a/core'), []);
  });

  test('accepts a Service without nodes, and reports how to label a node', () => {
    const translation = translateFresh({ nodes: [], services: [service('a/web')] });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    const problem = translation.problems.find(({ code }) => code === 'NoNodes');
    assert.match(problem?.message ?? '', /kubectl label node/);
  });

  test('binds only addresses of the IP families of the Service', () => {
    const dual = node('n1', '192.0.2.1', { internalIPs: ['192.0.2.1', '2001:db8::1'] });
    const addresses = (ipFamilies: readonly string[]): string[] =>
      entriesOf(translateFresh({ nodes: [dual], services: [service('a/web', { ipFamilies })] }).table, 'listener').map(
        (listener) => listener.address,
      );
    assert.deepEqual(addresses(['IPv6']), ['2001:db8::1']);
    assert.deepEqual(addresses([]), ['192.0.2.1', '2001:db8::1']);
  });
});
