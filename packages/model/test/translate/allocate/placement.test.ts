import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { node, port, service } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../../fixtures/translation.ts';

describe('placement', () => {
  const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];

  test('a Service gets its ports on every labelled node that is not excluded', () => {
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

  test('a port that two Services want has one owner, the older one, and the other is told', () => {
    const translation = translateFresh({
      nodes,
      services: [service('a/late', { createdAt: 2 }), service('b/early', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(translation, 'b/early'), ['n1:80', 'n2:80']);
    assert.deepEqual(portsOf(translation, 'a/late'), []);
    assert.equal(reasonOf(translation, 'a/late'), 'PortConflict');
    assert.match(messageOf(translation, 'a/late'), /port 80\/TCP is taken by another tenant on the 2 nodes/);
    assert.doesNotMatch(messageOf(translation, 'a/late'), /early/);
  });

  test('the owner of a port is named to its own tenant', () => {
    const translation = translateFresh({
      services: [service('a/one', { createdAt: 1 }), service('a/two', { createdAt: 2 })],
    });
    assert.match(messageOf(translation, 'a/two'), /Service a\/one on the only node/);
  });

  test('who holds a port keeps it against an older Service that comes later', () => {
    const before = translateFresh({ services: [service('a/holder', { createdAt: 5 })] });
    const after = translateAfter(before, {
      services: [service('a/holder', { createdAt: 5 }), service('b/older', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(after, 'a/holder'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/older'), 'PortConflict');
  });

  test('when everything is lost, whose address was published goes before who is older', () => {
    const translation = translateFresh({
      services: [
        service('a/older', { createdAt: 1 }),
        service('b/published', { createdAt: 2, publishedIPs: ['192.0.2.1'] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'b/published'), ['n1:80']);
  });

  test('a port that is given up goes to the Service that waits', () => {
    const both = [service('a/one', { createdAt: 1 }), service('b/two', { createdAt: 2 })];
    const before = translateFresh({ services: both });
    const after = translateAfter(before, { services: [service('b/two', { createdAt: 2 })] });
    assert.deepEqual(portsOf(after, 'b/two'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/two'), 'Accepted');
  });

  test('a Service that serves and gains a taken port keeps the others and says which is refused', () => {
    const owner = service('b/owner', { ports: [port(443)] });
    const before = translateFresh({ services: [service('a/web'), owner] });
    const after = translateAfter(before, { services: [service('a/web', { ports: [port(80), port(443)] }), owner] });
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
    assert.equal(reasonOf(after, 'a/web'), 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[0]?.error, null);
  });

  test('a new Service with one taken port is refused whole', () => {
    const translation = translateFresh({
      services: [
        service('b/owner', { ports: [port(443)], createdAt: 1 }),
        service('a/web', { ports: [port(80), port(443)] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'a/web'), []);
    assert.equal(reasonOf(translation, 'a/web'), 'PortConflict');
  });

  test('a reserved port is refused, and says so', () => {
    const translation = translateFresh({ services: [service('a/ssh', { ports: [port(22)] })] });
    assert.equal(reasonOf(translation, 'a/ssh'), 'PortReserved');
  });

  test('TCP and UDP on one number are two listeners, also of two Services', () => {
    const dns = [port(53, { name: 'tcp' }), port(53, { name: 'udp', protocol: 'UDP' })];
    const one = translateFresh({ services: [service('a/dns', { ports: dns })] });
    assert.deepEqual(portsOf(one, 'a/dns'), ['n1:53', 'n1:53']);
    assert.equal(reasonOf(one, 'a/dns'), 'Accepted');
    const two = translateFresh({
      services: dns.map((each) => service(`a/${each.name}`, { ports: [each] })),
    });
    assert.deepEqual([reasonOf(two, 'a/tcp'), reasonOf(two, 'a/udp')], ['Accepted', 'Accepted']);
  });

  test('SCTP beside TCP is refused alone; SCTP only is refused whole', () => {
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

  test('without nodes a Service is accepted, and the problem says how to label one', () => {
    const translation = translateFresh({ nodes: [], services: [service('a/web')] });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    const problem = translation.problems.find(({ code }) => code === 'NoNodes');
    assert.match(problem?.message ?? '', /kubectl label node/);
  });

  test('only addresses of the families of the Service are bound', () => {
    const dual = node('n1', '192.0.2.1', { internalIPs: ['192.0.2.1', '2001:db8::1'] });
    const addresses = (ipFamilies: readonly string[]): string[] =>
      entriesOf(translateFresh({ nodes: [dual], services: [service('a/web', { ipFamilies })] }).table, 'listener').map(
        (listener) => listener.address,
      );
    assert.deepEqual(addresses(['IPv6']), ['2001:db8::1']);
    assert.deepEqual(addresses([]), ['192.0.2.1', '2001:db8::1']);
  });
});
