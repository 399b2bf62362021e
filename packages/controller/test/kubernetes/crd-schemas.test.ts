import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { requireProgram } from '@weir/tools';
import { type Cluster, startCluster } from '../fixtures/cluster.ts';
import { RULE_CASES } from '../fixtures/policy-rule-cases.ts';

describe('the CRD schemas', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  /** Returns `accepted` or the message of the API server. */
  const apply = async (kind: string, spec: object): Promise<string> => {
    const object = { apiVersion: 'weir.dev/v1alpha1', kind, metadata: { name: 'x' }, spec };
    return cluster.kubectl('apply', '--dry-run=server', '-f', '-', { stdin: JSON.stringify(object) }).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  };

  test('accept a Suspension with exactly one target', async () => {
    const target = { type: 'Service', namespace: 'shop', service: 'web' };
    assert.equal(await apply('Suspension', { target, until: '2030-01-01T00:00:00Z', message: 'x' }), 'accepted');
    assert.match(
      await apply('Suspension', { target: { type: 'Tenant' } }),
      /type Tenant needs tenant, and nothing else/,
    );
    assert.match(
      await apply('Suspension', { target: { ...target, tenant: 'x' } }),
      /type Service needs namespace and service/,
    );
    assert.match(await apply('Suspension', { target, until: 'tomorrow' }), /date-time/);
  });

  test('accept a TenantPolicy only with known fields of the right type and in valid combinations', async () => {
    const later = { pools: ['edge'], allowedPorts: [80, '8000-8999'], limits: { inBitsPerSecond: '1G' } };
    assert.equal(await apply('TenantPolicy', { tenantFrom: { type: 'Label', label: 'team' }, ...later }), 'accepted');
    assert.match(await apply('TenantPolicy', { allowedPorts: ['http'] }), /spec.allowedPorts\[0\]/);
    assert.match(await apply('TenantPolicy', { allowedPorts: [70_000] }), /less than or equal to 65535/);
    assert.match(await apply('TenantPolicy', { allowedEndpointCIDRs: ['everywhere'] }), /allowedEndpointCIDRs\[0\]/);
    assert.equal(await apply('TenantPolicy', { allowedHosts: ['shop.example.com', '*.Shop.example'] }), 'accepted');
    assert.match(await apply('TenantPolicy', { allowedHosts: ['a.*.example'] }), /spec.allowedHosts\[0\]/);
    assert.match(await apply('TenantPolicy', { allowedHosts: ['10.0.0.1'] }), /not end with a label of digits/);
    assert.match(await apply('TenantPolicy', { pools: ['-'] }), /spec.pools\[0\]/);
    assert.equal(await apply('TenantPolicy', { limits: { services: 0, trafficPerMonth: '10Ti' } }), 'accepted');
    assert.equal(await apply('TenantPolicy', { limits: { trafficPerMonth: 1_000 } }), 'accepted');
    assert.match(await apply('TenantPolicy', { limits: { trafficPerMonth: '10TB' } }), /trafficPerMonth/);
    assert.match(await apply('TenantPolicy', { limits: { services: -1 } }), /services.*greater than or equal to 0/);
    assert.match(await apply('TenantPolicy', { tenantFrom: { type: 'Label' } }), /type Label needs label/);
    const named = { name: 'gold' };
    assert.match(await apply('TenantPolicy', { tenantFrom: named }), /name goes with type Name only/);
    assert.match(
      await apply('TenantPolicy', { tenantFrom: { type: 'Name', label: 'team', ...named } }),
      /label goes with type Label only/,
    );
    assert.match(await apply('TenantPolicy', { limts: {} }), /unknown field "spec.limts"/);
  });

  test('accept the same rules of a TenantPolicy as the controller', async () => {
    for (const { name, limits, rules, mistake } of RULE_CASES) {
      const outcome = await apply('TenantPolicy', { limits, rules });
      assert.equal(outcome === 'accepted', mistake === undefined, `${name}: ${outcome}`);
    }
  });
});
