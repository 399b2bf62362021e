// Tests the shares of limits, and what each row says about the demand of its owner.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diff, EMPTY_TABLE } from '@weir/model';
import { type Admission, AdmissionController, type AdmissionRefusal } from '../../src/limits/admission.ts';
import type { LimiterConfig } from '../../src/limits/limiter.ts';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { SessionThrottle, Shaper } from '../../src/limits/shaper.ts';
import { TableLimits } from '../../src/limits/table-limits.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED: LimiterConfig = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};
const WEB: TestService = { name: 'web', port: 80, endpoints: [] };
const web = uidOf(WEB);

/** The rows of one Service and its tenant, and two workers, all in one thread. */
class RowsInTest {
  readonly registry = new LimiterRegistry(2);
  readonly service: number = this.registry.allocateRow('service');
  readonly tenant: number = this.registry.allocateRow('tenant');
  readonly workers: AdmissionController[] = [1, 2].map((worker) => {
    const controller = new AdmissionController(this.registry.addWorker(worker));
    controller.assign([[web, this.service, this.tenant]]);
    return controller;
  });

  constructor(limits: { readonly service?: Partial<LimiterConfig>; readonly tenant?: Partial<LimiterConfig> }) {
    this.registry.configure(this.service, { ...UNLIMITED, ...limits.service });
    this.registry.configure(this.tenant, { ...UNLIMITED, ...limits.tenant });
  }

  /** Tries to admit connections in turn in both workers. Returns the admissions. */
  admit(attempts: number): Admission[] {
    const results: (Admission | AdmissionRefusal)[] = Array.from({ length: attempts }, (_, attempt) =>
      (this.workers[attempt % 2] as AdmissionController).admit(web),
    );
    return results.filter((result) => typeof result !== 'string');
  }
}

test('a share limits a row below its limit, and never above it', () => {
  const rows = new RowsInTest({ tenant: { connections: 6 } });
  rows.registry.setShare(rows.tenant, 'connections', { share: 4 });
  const open = rows.admit(10);
  assert.equal(open.length, 4);
  rows.registry.setShare(rows.tenant, 'connections', { share: 100 });
  open.push(...rows.admit(10));
  assert.equal(open.length, 6);
  for (const admission of open) admission.release();
});

test('a share stays when the limit changes, and is forgotten when the limit is removed', () => {
  const rows = new RowsInTest({ tenant: { connections: 6 } });
  const { registry, tenant } = rows;
  registry.setShare(tenant, 'connections', { share: 2 });
  registry.configure(tenant, { ...UNLIMITED, connections: 9 });
  assert.equal(rows.admit(10).length, 2);
  assert.equal(registry.limits(tenant).connections, 9);
  registry.configure(tenant, UNLIMITED);
  assert.equal(rows.admit(10).length, 10);
  registry.setShare(tenant, 'connections', { share: 2 });
  assert.equal(rows.admit(10).length, 10, 'without a limit there is no share');
});

test('a row that gets a new owner has no share', () => {
  const rows = new RowsInTest({ service: { connections: 6 } });
  const { registry, service } = rows;
  registry.setShare(service, 'connections', { share: 1 });
  registry.release('service', 1);
  registry.setAppliedMark(1);
  assert.equal(registry.allocateRow('other'), service);
  registry.configure(service, { ...UNLIMITED, connections: 6 });
  assert.equal(rows.admit(10).length, 6);
});

test('counts what clients ask for and what they get, over all workers', () => {
  const rows = new RowsInTest({ tenant: { connections: 8, newConnectionsPerSecond: 5, requestsPerSecond: 2 } });
  const [first] = rows.admit(7);
  for (let request = 0; request < 6; request += 1) first?.admitRequest();
  const demand = rows.registry.demand(rows.tenant);
  assert.deepEqual(demand, {
    open: 5,
    admittedNew: 5,
    admittedRequests: 2,
    waitingIn: 0,
    waitingOut: 0,
    refusedOpen: 0,
    offeredNew: 7,
    offeredRequests: 6,
    inBytes: 0,
    outBytes: 0,
  });
  rows.registry.configure(rows.tenant, { ...UNLIMITED, connections: 5 });
  rows.admit(3);
  assert.equal(rows.registry.demand(rows.tenant).refusedOpen, 3);
  assert.equal(rows.registry.demand(rows.tenant).offeredNew, 7, 'no rate is limited');
});

test('counts limited bytes and the readers that wait for them, and forgets the readers of a dead worker', () => {
  const registry = new LimiterRegistry(1);
  const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
  registry.configure(rows[0], UNLIMITED);
  registry.configure(rows[1], { ...UNLIMITED, inBitsPerSecond: 8_000 });
  const worker = new AdmissionController(registry.addWorker(1));
  worker.assign([[web, ...rows]]);
  const shaper = new Shaper(() => 10_000_000_000n);
  for (let stream = 0; stream < 3; stream += 1) {
    const admission = worker.admit(web) as Admission;
    const throttle = new SessionThrottle(shaper, admission.limiters, { onReadAllowed: () => undefined });
    assert.equal(throttle.mayRead('in', stream === 0 ? 5_000 : 0), false);
    assert.equal(throttle.mayRead('out', 700), true);
  }
  const { inBytes, outBytes, waitingIn, waitingOut } = registry.demand(rows[1]);
  assert.deepEqual(
    { inBytes, outBytes, waitingIn, waitingOut },
    { inBytes: 5_000, outBytes: 0, waitingIn: 3, waitingOut: 0 },
  );
  registry.removeWorker(1);
  assert.equal(registry.demand(rows[1]).waitingIn, 0);
  assert.equal(registry.demand(rows[1]).inBytes, 5_000, 'totals only increase');
});

test('a connection or request that the rate of the tenant refuses does not count in the rate of the Service', () => {
  const rows = new RowsInTest({
    service: { newConnectionsPerSecond: 4, requestsPerSecond: 4 },
    tenant: { newConnectionsPerSecond: 2, requestsPerSecond: 2 },
  });
  const [first] = rows.admit(4);
  for (let request = 0; request < 4; request += 1) first?.admitRequest();
  const { admittedNew, admittedRequests } = rows.registry.demand(rows.service);
  assert.deepEqual([admittedNew, admittedRequests], [2, 2]);
});

test('yields the tenants and Services that have limits', () => {
  const registry = new LimiterRegistry(1);
  const tableLimits = new TableLimits(registry);
  const limits = { connections: 3, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };
  const services: TestService[] = [
    { ...WEB, settings: { limits } },
    { name: 'api', port: 81, endpoints: [] },
    { name: 'blog', port: 82, endpoints: [], tenant: 'blog' },
  ];
  const table = tableFor({}, services, { shop: { requestsPerSecond: 10 }, blog: {} });
  const { rows } = tableLimits.apply(diff(EMPTY_TABLE, table), table.entries);
  const [, serviceRow, tenantRow] = rows.find(([uid]) => uid === web) ?? assert.fail();
  assert.deepEqual(
    [...tableLimits.leased()],
    [
      {
        owner: { kind: 'tenant', name: 'shop' },
        row: tenantRow,
        limits: { ...UNLIMITED, requestsPerSecond: 10 },
        isLeaving: false,
      },
      {
        owner: { kind: 'service', uid: web },
        row: serviceRow,
        limits: { ...UNLIMITED, connections: 3 },
        isLeaving: false,
      },
    ],
  );
});

test('yields a tenant that was removed until the units of its last second no longer count', (t) => {
  let now = 10_000_000_000n;
  t.mock.method(process.hrtime, 'bigint', () => now);
  const registry = new LimiterRegistry(1);
  const worker = new AdmissionController(registry.addWorker(1));
  const tableLimits = new TableLimits(registry);
  const table = tableFor({}, [WEB], { shop: { newConnectionsPerSecond: 5 } });
  worker.assign(tableLimits.apply(diff(EMPTY_TABLE, table), table.entries).rows);
  (worker.admit(web) as Admission).release();
  const { rows, releasedOwners } = tableLimits.apply(diff(table, EMPTY_TABLE), EMPTY_TABLE.entries);
  const count = (): number => [...tableLimits.leased()].length;
  tableLimits.release(releasedOwners, 1);
  now += 1_100_000_000n;
  assert.equal(count(), 1, 'a worker may not know of the removal yet');
  now -= 1_100_000_000n;
  worker.assign(rows);
  registry.setAppliedMark(1);
  assert.equal(count(), 1);
  now += 1_100_000_000n;
  assert.equal(count(), 0);
});

test('yields a tenant and a Service that were removed until their last connection has ended', () => {
  const registry = new LimiterRegistry(1);
  const worker = new AdmissionController(registry.addWorker(1));
  const tableLimits = new TableLimits(registry);
  const limits = { connections: 3, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null };
  const table = tableFor({}, [{ ...WEB, settings: { limits } }], { shop: { connections: 5 } });
  worker.assign(tableLimits.apply(diff(EMPTY_TABLE, table), table.entries).rows);
  const admission = worker.admit(web) as Admission;
  const remove = (): void => {
    const { rows, releasedOwners } = tableLimits.apply(diff(table, EMPTY_TABLE), EMPTY_TABLE.entries);
    worker.assign(rows);
    tableLimits.release(releasedOwners, 1);
    registry.setAppliedMark(1);
  };
  const kinds = (): unknown[] => [...tableLimits.leased()].map(({ owner, isLeaving }) => [owner.kind, isLeaving]);
  remove();
  assert.deepEqual(kinds(), [
    ['service', true],
    ['tenant', true],
  ]);
  worker.assign(tableLimits.apply(diff(EMPTY_TABLE, table), table.entries).rows);
  assert.deepEqual(kinds(), [
    ['tenant', false],
    ['service', false],
  ]);
  remove();
  admission.release();
  assert.deepEqual(kinds(), []);
});
