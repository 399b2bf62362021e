import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tableOf, tenantId, ZERO_COUNTERS } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import { addControllerMetrics } from '../../src/controller/controller-metrics.ts';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { serviceObject } from '../fixtures/fake-source.ts';

test('docs/metrics.md lists exactly the metrics of the controller', async () => {
  const metrics = createMetrics();
  addControllerMetrics(metrics, new ManualClock());
  const registered = [...(await metrics.render()).matchAll(/^# TYPE (weir_controller_\w+)/gm)].map(([, name]) => name);
  const page = readFileSync(fileURLToPath(new URL('../../../../docs/metrics.md', import.meta.url)), 'utf8');
  const listed = [...page.matchAll(/^\| `(weir_controller_\w+)/gm)].map(([, name]) => name);
  assert.ok(registered.length > 10, `only ${registered.length} metrics were found`);
  assert.deepEqual(listed.sort(), registered.sort());
});

test('counts publications by result, failed attempts as retries, and changes of leadership', async (context) => {
  const registry = createMetrics();
  const clock = new ManualClock();
  const leader = createFakeLeadership();
  const metrics = addControllerMetrics(registry, clock);
  const status = { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' as const };
  const { store, source, advance } = await startControllerHarness(context, { clock, leader, metrics, status });
  const readSeries = async (): Promise<Record<string, number>> => {
    const lines = [...(await registry.render()).matchAll(/^weir_controller_(\S+) (\S+)$/gm)];
    const values = lines.map(([, series, value]) => [(series ?? '').replaceAll('"', ''), Number(value)] as const);
    return Object.fromEntries(values.filter(([series]) => /^(publish|leader|last)/.test(series)));
  };
  const first = await readSeries();
  assert.ok(Math.abs((first.last_publish_timestamp_seconds ?? 0) - clock.now() / 1000) < 1);
  assert.deepEqual(
    { ...first, last_publish_timestamp_seconds: 0 },
    {
      leader: 1,
      leader_changes_total: 1,
      'publishes_total{result=published}': 1,
      'publishes_total{result=empty}': 0,
      'publishes_total{result=fenced}': 0,
      publish_retries_total: 0,
      last_publish_timestamp_seconds: 0,
    },
  );

  source.set({});
  await advance(10);
  assert.equal((await readSeries())['publishes_total{result=empty}'], 1);
  store.faults.goAway();
  source.set({ services: [] });
  await advance(100);
  assert.equal((await readSeries()).publish_retries_total, 1);
  store.faults.comeBack();
  await advance(2_000);
  assert.deepEqual(await servedServices(store), []);
  await store.table.claimLeader();
  source.set({ services: [serviceObject('web')] });
  await advance(100);
  for (const loop of ['table', 'fleet', 'status', 'suspensions', 'ledger'])
    assert.match(await registry.render(), new RegExp(`loop_duration_seconds_count{loop="${loop}"} [1-9]`));
  const last = await readSeries();
  assert.equal(last['publishes_total{result=fenced}'], 1);
  assert.equal(last['publishes_total{result=published}'], 3);
  leader.set(false);
  const lost = await readSeries();
  assert.deepEqual([lost.leader, lost.leader_changes_total], [0, 2]);
});

test('exports limits and use of tenants, nodes and problems while the controller leads', async () => {
  const registry = createMetrics();
  const leader = createFakeLeadership();
  const metrics = addControllerMetrics(registry, new ManualClock());
  metrics.trackLeadership(leader);
  const tenant = {
    kind: 'tenant',
    id: tenantId('shop'),
    name: 'shop',
    policy: null,
    namespaces: ['shop'],
    limits: { services: 2, trafficPerMonth: 1_000 },
    used: { services: 1, ports: 3 },
  } as const;
  const table = tableOf([tenant]);
  const counters = { ...ZERO_COUNTERS, receivedBytes: 100, sentBytes: 800 };
  metrics.setTenants(table, [{ service: 'uid', tenant: 'shop', namespace: 'shop', name: 'web', counters }]);
  const problem = { subject: 'Service shop/web', severity: 'warning', heals: true, message: 'soon' } as const;
  metrics.trackTranslation(() => ({ table, problems: [{ ...problem, code: 'CertificateExpiring' }] }));
  const readSeries = async (): Promise<string[]> =>
    [
      ...(await registry.render()).matchAll(/^(weir_(?:tenant_\w+|controller_nodes|controller_problems)\S* \S+)$/gm),
    ].map(([, line]) => line ?? '');
  assert.deepEqual((await readSeries()).sort(), [
    'weir_controller_nodes 0',
    'weir_controller_problems{code="CertificateExpiring"} 1',
    'weir_tenant_limit{tenant="shop",resource="services"} 2',
    'weir_tenant_limit{tenant="shop",resource="trafficPerMonth"} 1000',
    'weir_tenant_used{tenant="shop",resource="ports"} 3',
    'weir_tenant_used{tenant="shop",resource="services"} 1',
    'weir_tenant_used{tenant="shop",resource="trafficPerMonth"} 900',
  ]);
  leader.set(false);
  assert.deepEqual(await readSeries(), []);
});
