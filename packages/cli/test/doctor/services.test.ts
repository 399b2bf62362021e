import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { findingFor, NOW, service } from '../fixtures/doctor-facts.ts';

test('PublishedAddresses fails for a Service of Weir with an address without ipMode: Proxy', () => {
  const services = knownFact([
    service('vip', { ingress: [{ ip: '10.0.0.1', ipMode: 'VIP' }] }),
    service('old', { ingress: [{ ip: '10.0.0.1', ipMode: null }] }),
    service('name', { ingress: [{ ip: null, ipMode: null }] }),
    service('theirs', {
      loadBalancerClass: 'other/class',
      hasWeirCondition: false,
      ingress: [{ ip: '10.9.0.1', ipMode: 'VIP' }],
    }),
  ]);
  const { severity, message } = findingFor('PublishedAddresses', { services });
  assert.equal(severity, 'error');
  assert.match(message, /^shop\/vip, shop\/old: an address is published without ipMode: Proxy/);
});

test('NodePorts warns about Services of Weir with node ports, also without a class', () => {
  const services = knownFact([
    service('web', { nodePorts: [30_080, 30_443] }),
    service('plain', { loadBalancerClass: null, nodePorts: [31_000] }),
    service('theirs', { loadBalancerClass: null, hasWeirCondition: false, nodePorts: [31_001] }),
    service('ignored', { ignored: true, nodePorts: [31_002] }),
  ]);
  const { severity, message } = findingFor('NodePorts', { services });
  assert.equal(severity, 'warning');
  assert.match(
    message,
    /^2 Services can be reached by node ports, .*: shop\/web \(30080, 30443\), shop\/plain \(31000\); set spec\.alloc/,
  );
});

const WAITING = { hasWeirCondition: false, ingress: [] };

test('UntakenServices fails for a Service of the class without a condition', () => {
  const { severity, message } = findingFor('UntakenServices', { services: knownFact([service('web', WAITING)]) });
  assert.equal(severity, 'error');
  assert.match(
    message,
    /^no controller serves 1 Service .*with class weir\.dev\/weir, but without a condition.*: shop\/web$/,
  );
});

test('UntakenServices warns about Services without a class or of another class', () => {
  const services = knownFact([
    service('plain', { ...WAITING, loadBalancerClass: null }),
    service('foreign', { ...WAITING, loadBalancerClass: 'other/class' }),
  ]);
  const { severity, message } = findingFor('UntakenServices', { services });
  assert.equal(severity, 'warning');
  assert.match(message, /WEIR_CLASSLESS=true serves .*: shop\/plain; .*: shop\/foreign \(other\/class\)$/);
});

test('UntakenServices skips new, deleted and ignored Services and Services with an address', () => {
  const services = knownFact([
    service('young', { ...WAITING, createdAt: NOW - 5_000 }),
    service('going', { ...WAITING, isDeleting: true }),
    service('ignored', { ...WAITING, ignored: true }),
    service('served', { ...WAITING, loadBalancerClass: 'other/class', ingress: [{ ip: '10.9.0.1', ipMode: 'VIP' }] }),
  ]);
  assert.equal(findingFor('UntakenServices', { services }).severity, 'ok');
});

test('checks the Services of another loadBalancerClass if that class is configured', () => {
  const services = knownFact([
    service('web', { loadBalancerClass: 'blue/weir', hasWeirCondition: false, nodePorts: [30_000] }),
  ]);
  assert.equal(findingFor('NodePorts', { services }).severity, 'ok');
  assert.equal(findingFor('NodePorts', { services, loadBalancerClass: 'blue/weir' }).severity, 'warning');
});

test('lists ten Services and counts the rest', () => {
  const many = Array.from({ length: 40 }, (_, index) => service(`s${index}`, { nodePorts: [30_000] }));
  assert.match(
    findingFor('NodePorts', { services: knownFact(many) }).message,
    /^40 Services .* shop\/s9 \(30000\) and 30 more;/,
  );
});

test('EphemeralPorts warns about ports of the ephemeral range and names the kernel setting', () => {
  const services = knownFact([
    service('below', { ports: [80, 32_767] }),
    service('first', { ports: [80, 32_768] }),
    service('last', { ports: [60_999] }),
    service('above', { ports: [61_000] }),
    service('theirs', { ports: [40_000], loadBalancerClass: 'other/class', hasWeirCondition: false }),
  ]);
  const { severity, message } = findingFor('EphemeralPorts', { services });
  assert.equal(severity, 'warning');
  assert.match(
    message,
    /^2 Services with ports in 32768-60999: shop\/first \(32768\), shop\/last \(60999\); Linux .*; reserve/,
  );
  assert.match(message, /net\.ipv4\.ip_local_reserved_ports/);
  assert.equal(findingFor('EphemeralPorts').severity, 'ok');
});
