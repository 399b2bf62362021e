import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { findingFor, lease, NOW, server } from '../fixtures/doctor-facts.ts';

test('KubernetesVersion requires 1.30, the first version with ipMode', () => {
  const verdicts = ['v1.29.9', 'v1.30.0', 'v1.36.2+k3s1', 'v1.9.0', 'v2.0.0'].map(
    (version) => findingFor('KubernetesVersion', { server: server(version) }).severity,
  );
  assert.deepEqual(verdicts, ['error', 'ok', 'ok', 'error', 'ok']);
  const odd = findingFor('KubernetesVersion', { server: server('unknown') });
  assert.equal(odd.severity, 'warning');
  assert.match(odd.message, /^not checked: unknown version "unknown"/);
});

test('CustomResources fails for missing resources and prints how to install them', () => {
  const finding = findingFor('CustomResources', { customResources: knownFact(['tenantusages']) });
  assert.equal(finding.severity, 'error');
  assert.match(
    finding.message,
    /^the API server does not serve tenantpolicies, suspensions; .*kubectl apply -f charts/,
  );
  assert.match(
    findingFor('CustomResources', { customResources: knownFact([]) }).message,
    /^the API server does not serve .*tenantusages; /,
  );
});

test('ControllerLeader fails without a Lease and names other fleets with a Lease', () => {
  const none = findingFor('ControllerLeader', { leases: knownFact([]) });
  assert.equal(none.severity, 'error');
  assert.match(
    none.message,
    /^no controller of this fleet has ever become the leader: Lease weir-controller-weir does not exist;/,
  );
  const other = findingFor('ControllerLeader', { leases: knownFact([lease({ name: 'weir-controller-blue' })]) });
  assert.match(other.message, /\(fleets with a Lease: blue; choose one with --fleet\)/);
});

test('ControllerLeader fails if the Lease is expired or has no holder', () => {
  const late = findingFor('ControllerLeader', { leases: knownFact([lease({ renewedAt: NOW - 120_000 })]) });
  assert.equal(late.severity, 'error');
  assert.match(late.message, /controller-a has not renewed Lease weir-system\/weir-controller-weir for 120 s/);
  const free = findingFor('ControllerLeader', { leases: knownFact([lease({ holder: null })]) });
  assert.match(free.message, /has no holder/);
});

test('ControllerLeader fails for two leaders of one fleet and accepts leaders of other fleets', () => {
  const twice = knownFact([lease(), lease({ namespace: 'other' })]);
  const two = findingFor('ControllerLeader', { leases: twice });
  assert.equal(two.severity, 'error');
  assert.match(
    two.message,
    /^2 controllers lead, each with a Lease of its own \(.*weir-controller-weir, other\/weir-controller-weir\); run all controllers of a fleet in one/,
  );
  const beside = findingFor('ControllerLeader', {
    leases: knownFact([lease(), lease({ name: 'weir-controller-blue' })]),
  });
  assert.equal(beside.severity, 'ok');
  assert.match(beside.message, /; the cluster also has other fleets, .*: blue$/);
  const old = knownFact([lease(), lease({ namespace: 'other', renewedAt: NOW - 900_000 })]);
  assert.equal(findingFor('ControllerLeader', { leases: old }).severity, 'ok');
});

test('ServiceRanges accepts ranges of the cluster or of WEIR_SERVICE_CIDRS and warns without both', () => {
  const published = findingFor('ServiceRanges');
  assert.deepEqual(
    [published.severity, published.message],
    ['ok', '10.96.0.0/16; Weir refuses endpoints in these ranges'],
  );
  const none = findingFor('ServiceRanges', { serviceRanges: knownFact([]) });
  assert.equal(none.severity, 'warning');
  assert.match(none.message, /^the API server does not publish the ranges of cluster IPs .*set WEIR_SERVICE_CIDRS to/);
  const set = findingFor('ServiceRanges', { serviceRanges: knownFact([]), serviceCidrs: '10.43.0.0/16' });
  assert.deepEqual([set.severity, set.message.slice(0, 12)], ['ok', '10.43.0.0/16']);
});
