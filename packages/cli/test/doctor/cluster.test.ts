import assert from 'node:assert/strict';
import { test } from 'node:test';
import { known } from '../../src/doctor/fact.ts';
import { found, lease, NOW, server } from '../build/facts.ts';

test('KubernetesVersion: 1.30 is the oldest that knows ipMode', () => {
  const verdicts = ['v1.29.9', 'v1.30.0', 'v1.36.2+k3s1', 'v1.9.0', 'v2.0.0'].map(
    (version) => found('KubernetesVersion', { server: server(version) }).severity,
  );
  assert.deepEqual(verdicts, ['error', 'ok', 'ok', 'error', 'ok']);
  const odd = found('KubernetesVersion', { server: server('unknown') });
  assert.equal(odd.severity, 'warning');
  assert.match(odd.message, /^not checked: its version is "unknown"/);
});

test('CustomResources: those that are not served are named, with how to install them', () => {
  const some = found('CustomResources', { customResources: known(['tenantusages']) });
  assert.equal(some.severity, 'error');
  assert.match(some.message, /^tenantpolicies, suspensions are not served; .*kubectl apply -f charts/);
  assert.match(found('CustomResources', { customResources: known([]) }).message, /tenantusages are not served/);
});

test('ControllerLeader: no Lease means that none has led, and a Lease of another fleet gives a hint', () => {
  const none = found('ControllerLeader', { leases: known([]) });
  assert.equal(none.severity, 'error');
  assert.match(none.message, /^no controller has ever led: there is no Lease weir-controller-weir;/);
  const other = found('ControllerLeader', { leases: known([lease({ name: 'weir-controller-blue' })]) });
  assert.match(other.message, /there is one of fleet blue: --fleet/);
});

test('ControllerLeader: a Lease that is not renewed, or given back, is no leader', () => {
  const late = found('ControllerLeader', { leases: known([lease({ renewedAt: NOW - 120_000 })]) });
  assert.equal(late.severity, 'error');
  assert.match(late.message, /controller-a has not renewed Lease weir-system\/weir-controller-weir for 120 s/);
  const free = found('ControllerLeader', { leases: known([lease({ holder: null })]) });
  assert.match(free.message, /is held by nobody/);
});

test('ControllerLeader: a fleet has one Lease, and other fleets may stand beside it', () => {
  const twice = known([lease(), lease({ namespace: 'other' })]);
  const two = found('ControllerLeader', { leases: twice });
  assert.equal(two.severity, 'error');
  assert.match(
    two.message,
    /^more than one leads: .*weir-controller-weir, other\/weir-controller-weir; a fleet has one/,
  );
  const beside = found('ControllerLeader', { leases: known([lease(), lease({ name: 'weir-controller-blue' })]) });
  assert.equal(beside.severity, 'ok');
  assert.match(beside.message, /; beside it fleet blue/);
  const old = known([lease(), lease({ namespace: 'other', renewedAt: NOW - 900_000 })]);
  assert.equal(found('ControllerLeader', { leases: old }).severity, 'ok');
});

test('ServiceRanges: told by the cluster, or by the setting of the controller, and else a warning with where they stand', () => {
  const told = found('ServiceRanges');
  assert.deepEqual([told.severity, told.message], ['ok', '10.96.0.0/16; no endpoint may be there']);
  const none = found('ServiceRanges', { serviceRanges: known([]) });
  assert.equal(none.severity, 'warning');
  assert.match(none.message, /^the API server does not tell their ranges .*set WEIR_SERVICE_CIDRS of the controller/);
  const set = found('ServiceRanges', { serviceRanges: known([]), serviceCidrs: '10.43.0.0/16' });
  assert.deepEqual([set.severity, set.message.slice(0, 12)], ['ok', '10.43.0.0/16']);
});
