import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { findingFor, lease, NOW, server } from '../fixtures/doctor-facts.ts';

test('KubernetesVersion: 1.30 is the oldest that knows ipMode', () => {
  const verdicts = ['v1.29.9', 'v1.30.0', 'v1.36.2+k3s1', 'v1.9.0', 'v2.0.0'].map(
    (version) => findingFor('KubernetesVersion', { server: server(version) }).severity,
  );
  assert.deepEqual(verdicts, ['error', 'ok', 'ok', 'error', 'ok']);
  const odd = findingFor('KubernetesVersion', { server: server('unknown') });
  assert.equal(odd.severity, 'warning');
  assert.match(odd.message, /^not checked: its version is "unknown"/);
});

test('CustomResources: those that are not served are named, with how to install them', () => {
  const some = findingFor('CustomResources', { customResources: knownFact(['tenantusages']) });
  assert.equal(some.severity, 'error');
  assert.match(some.message, /^tenantpolicies, suspensions are not served; .*kubectl apply -f charts/);
  assert.match(
    findingFor('CustomResources', { customResources: knownFact([]) }).message,
    /tenantusages are not served/,
  );
});

test('ControllerLeader: no Lease means that none has led, and a Lease of another fleet gives a hint', () => {
  const none = findingFor('ControllerLeader', { leases: knownFact([]) });
  assert.equal(none.severity, 'error');
  assert.match(none.message, /^no controller has ever led: there is no Lease weir-controller-weir;/);
  const other = findingFor('ControllerLeader', { leases: knownFact([lease({ name: 'weir-controller-blue' })]) });
  assert.match(other.message, /there is one of fleet blue: --fleet/);
});

test('ControllerLeader: a Lease that is not renewed, or given back, is no leader', () => {
  const late = findingFor('ControllerLeader', { leases: knownFact([lease({ renewedAt: NOW - 120_000 })]) });
  assert.equal(late.severity, 'error');
  assert.match(late.message, /controller-a has not renewed Lease weir-system\/weir-controller-weir for 120 s/);
  const free = findingFor('ControllerLeader', { leases: knownFact([lease({ holder: null })]) });
  assert.match(free.message, /is held by nobody/);
});

test('ControllerLeader: a fleet has one Lease, and other fleets may stand beside it', () => {
  const twice = knownFact([lease(), lease({ namespace: 'other' })]);
  const two = findingFor('ControllerLeader', { leases: twice });
  assert.equal(two.severity, 'error');
  assert.match(
    two.message,
    /^more than one leads: .*weir-controller-weir, other\/weir-controller-weir; a fleet has one/,
  );
  const beside = findingFor('ControllerLeader', {
    leases: knownFact([lease(), lease({ name: 'weir-controller-blue' })]),
  });
  assert.equal(beside.severity, 'ok');
  assert.match(beside.message, /; beside it fleet blue/);
  const old = knownFact([lease(), lease({ namespace: 'other', renewedAt: NOW - 900_000 })]);
  assert.equal(findingFor('ControllerLeader', { leases: old }).severity, 'ok');
});

test('ServiceRanges: told by the cluster, or by the setting of the controller, and else a warning with where they stand', () => {
  const told = findingFor('ServiceRanges');
  assert.deepEqual([told.severity, told.message], ['ok', '10.96.0.0/16; no endpoint may be there']);
  const none = findingFor('ServiceRanges', { serviceRanges: knownFact([]) });
  assert.equal(none.severity, 'warning');
  assert.match(none.message, /^the API server does not tell their ranges .*set WEIR_SERVICE_CIDRS of the controller/);
  const set = findingFor('ServiceRanges', { serviceRanges: knownFact([]), serviceCidrs: '10.43.0.0/16' });
  assert.deepEqual([set.severity, set.message.slice(0, 12)], ['ok', '10.43.0.0/16']);
});
