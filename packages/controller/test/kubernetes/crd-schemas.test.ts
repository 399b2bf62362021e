import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { type Cluster, startCluster } from '../fixtures/cluster.ts';
import { RULE_CASES } from '../fixtures/policy-rule-cases.ts';

describe('what kubectl applies', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  /** `accepted`, or what the API server says. */
  const refused = async (kind: string, spec: object): Promise<string> => {
    const object = { apiVersion: 'weir.dev/v1alpha1', kind, metadata: { name: 'x' }, spec };
    return cluster.kubectl('apply', '--dry-run=server', '-f', '-', { stdin: JSON.stringify(object) }).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  };

  test('as a Suspension has one target', async () => {
    const target = { type: 'Service', namespace: 'shop', service: 'web' };
    assert.equal(await refused('Suspension', { target, until: '2030-01-01T00:00:00Z', message: 'x' }), 'accepted');
    assert.match(
      await refused('Suspension', { target: { type: 'Tenant' } }),
      /type Tenant needs tenant, and nothing else/,
    );
    assert.match(
      await refused('Suspension', { target: { ...target, tenant: 'x' } }),
      /type Service needs namespace and service/,
    );
    assert.match(await refused('Suspension', { target, until: 'tomorrow' }), /date-time/);
  });

  test('as a TenantPolicy has fields that exist, of the right type, and that go together', async () => {
    const later = { pools: ['edge'], allowedPorts: [80, '8000-8999'], limits: { inBitsPerSecond: '1G' } };
    assert.equal(await refused('TenantPolicy', { tenantFrom: { type: 'Label', label: 'team' }, ...later }), 'accepted');
    assert.match(await refused('TenantPolicy', { allowedPorts: ['http'] }), /spec.allowedPorts\[0\]/);
    assert.match(await refused('TenantPolicy', { allowedPorts: [70_000] }), /less than or equal to 65535/);
    assert.match(await refused('TenantPolicy', { allowedEndpointCIDRs: ['everywhere'] }), /allowedEndpointCIDRs\[0\]/);
    assert.equal(await refused('TenantPolicy', { allowedHosts: ['shop.example.com', '*.Shop.example'] }), 'accepted');
    assert.match(await refused('TenantPolicy', { allowedHosts: ['a.*.example'] }), /spec.allowedHosts\[0\]/);
    assert.match(await refused('TenantPolicy', { allowedHosts: ['10.0.0.1'] }), /not end with a label of digits/);
    assert.match(await refused('TenantPolicy', { pools: ['-'] }), /spec.pools\[0\]/);
    assert.equal(await refused('TenantPolicy', { limits: { services: 0, trafficPerMonth: '10Ti' } }), 'accepted');
    assert.equal(await refused('TenantPolicy', { limits: { trafficPerMonth: 1_000 } }), 'accepted');
    assert.match(await refused('TenantPolicy', { limits: { trafficPerMonth: '10TB' } }), /trafficPerMonth/);
    assert.match(await refused('TenantPolicy', { limits: { services: -1 } }), /services.*greater than or equal to 0/);
    assert.match(await refused('TenantPolicy', { tenantFrom: { type: 'Label' } }), /type Label needs label/);
    const named = { name: 'gold' };
    assert.match(await refused('TenantPolicy', { tenantFrom: named }), /name goes with type Name only/);
    assert.match(
      await refused('TenantPolicy', { tenantFrom: { type: 'Name', label: 'team', ...named } }),
      /label goes with type Label only/,
    );
    assert.match(await refused('TenantPolicy', { limts: {} }), /unknown field "spec.limts"/);
  });

  test('as rules of a TenantPolicy is taken where the controller takes it, and refused where it does not', async () => {
    for (const { name, limits, rules, mistake } of RULE_CASES) {
      const answer = await refused('TenantPolicy', { limits, rules });
      assert.equal(answer === 'accepted', mistake === undefined, `${name}: ${answer}`);
    }
  });
});
