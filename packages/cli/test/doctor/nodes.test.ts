import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { findingFor, node, service } from '../fixtures/doctor-facts.ts';

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers';
const a = node('a', '10.0.0.1');
const b = node('b', '10.0.0.2');

test('LoadBalancingNodes fails without a usable node and warns for a single node', () => {
  const none = findingFor('LoadBalancingNodes', { nodes: knownFact([node('w', '10.0.0.1', { labels: {} })]) });
  assert.equal(none.severity, 'error');
  assert.match(none.message, /^none of 1 node has the label role=loadbalancer.*kubectl label node NAME/);
  const finding = findingFor('LoadBalancingNodes', { nodes: knownFact([a, { ...b, isCordoned: true }]) });
  assert.equal(finding.severity, 'warning');
  assert.match(finding.message, /^only a is usable/);
  const unusable = findingFor('LoadBalancingNodes', { nodes: knownFact([{ ...b, isCordoned: true }]) });
  assert.equal(unusable.severity, 'error');
  assert.match(unusable.message, /^none of the labelled nodes is usable/);
});

test('NodesLeftOut lists excluded, cordoned, deleting and unready nodes with the command to undo it', () => {
  const excluded = node('x', '10.0.0.3', { labels: { role: 'loadbalancer', [EXCLUDED]: '' } });
  const nodes = knownFact([
    a,
    excluded,
    { ...b, isCordoned: true },
    node('d', '10.0.0.4', { isDeleting: true }),
    node('n', '10.0.0.5', { isReady: false }),
    node('w', '10.0.0.6', { labels: {}, isReady: false }),
  ]);
  const { severity, message } = findingFor('NodesLeftOut', { nodes });
  assert.equal(severity, 'warning');
  for (const part of [
    `kubectl label node x ${EXCLUDED}-`,
    'kubectl uncordon b',
    'd is being deleted',
    'n is not ready',
  ]) {
    assert.ok(message.includes(part), message);
  }
  assert.ok(!message.includes('w is'), message);
});

test('NodeAddresses warns without an InternalIP and fails for an invalid annotation', () => {
  const withoutAddress = findingFor('NodeAddresses', { nodes: knownFact([a, { ...b, internalIPs: [] }]) });
  assert.equal(withoutAddress.severity, 'warning');
  assert.match(withoutAddress.message, /^b has no InternalIP/);
  const annotations = { 'weir.dev/addresses': '192.0.2.1, 192.0.2.300,2001:db8::1' };
  const invalid = findingFor('NodeAddresses', { nodes: knownFact([{ ...a, annotations }]) });
  assert.equal(invalid.severity, 'error');
  assert.equal(invalid.message, 'a: annotation weir.dev/addresses: "192.0.2.300" is not an IP address');
});

test('NodePools warns if a policy or Service names a pool without a usable node', () => {
  const pooled = { ...b, labels: { role: 'loadbalancer', 'weir.dev/pool': 'dmz' } };
  const policies = knownFact([{ name: 'shop', pools: ['default', 'dmz'] }]);
  const fine = findingFor('NodePools', { nodes: knownFact([a, pooled]), policies });
  assert.deepEqual([fine.severity, fine.message], ['ok', 'default: a; dmz: b']);
  const services = knownFact([service('web', { pool: 'dmz' }), service('own', { pool: 'x', ignored: true })]);
  const empty = findingFor('NodePools', { nodes: knownFact([a, { ...pooled, isCordoned: true }]), policies, services });
  assert.equal(empty.severity, 'warning');
  assert.match(
    empty.message,
    /^no usable node is in the pool "dmz" \(requested by TenantPolicy shop, Service shop\/web\); add a node \(kubectl/,
  );
});

test('ProxySourceAddresses lists the addresses that NetworkPolicies must allow, with tunnel addresses', () => {
  const calico = { ...a, annotations: { 'projectcalico.org/IPv4VXLANTunnelAddr': '10.244.1.0' } };
  const annotations = { 'flannel.alpha.coreos.com/backend-type': 'vxlan' };
  const flannel = { ...b, annotations, podCIDRs: ['10.244.2.0/24', 'fd00:2::/64'] };
  const { severity, message } = findingFor('ProxySourceAddresses', { nodes: knownFact([calico, flannel]) });
  assert.equal(severity, 'ok');
  assert.match(message, /: 10\.0\.0\.1, 10\.244\.1\.0, 10\.0\.0\.2, 10\.244\.2\.0, fd00:2::$/);
});

test('usableNodes accepts addresses from the annotation and treats an empty pool as the default pool', () => {
  const annotations = { 'weir.dev/addresses': '192.0.2.7' };
  const annotated = node('x', '', {
    internalIPs: [],
    annotations,
    labels: { role: 'loadbalancer', 'weir.dev/pool': '' },
  });
  const nodes = knownFact([a, annotated]);
  assert.deepEqual(findingFor('NodeAddresses', { nodes }).severity, 'ok');
  assert.deepEqual(findingFor('LoadBalancingNodes', { nodes }).message, '2 nodes: a, x');
  assert.deepEqual(findingFor('NodePools', { nodes }).message, 'default: a, x');
});
