import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, diff, EMPTY_TABLE, type RoutingTable, type TenantLimits } from '@weir/model';
import type { Admission } from '../../src/limits/admission.ts';
import { AdmissionController, type LimiterRows } from '../../src/limits/admission.ts';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { TableLimits } from '../../src/limits/table-limits.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const WEB: TestService = { name: 'web', port: 80, endpoints: [] };
const API: TestService = { name: 'api', port: 81, endpoints: [] };
const web = uidOf(WEB);
const api = uidOf(API);

/** Simulates a main thread and two workers in one thread. */
class LimiterScenario {
  readonly registry: LimiterRegistry;
  readonly tableLimits: TableLimits;
  readonly firstWorker: AdmissionController;
  secondWorker: AdmissionController;
  #table: RoutingTable = EMPTY_TABLE;
  #mark = 0;

  constructor(maxConnections?: number) {
    this.registry = new LimiterRegistry(2, maxConnections);
    this.tableLimits = new TableLimits(this.registry);
    this.firstWorker = new AdmissionController(this.registry.addWorker(1));
    this.secondWorker = new AdmissionController(this.registry.addWorker(2));
  }

  serve(services: readonly TestService[], limits: Record<string, TenantLimits> = {}): LimiterRows[] {
    const next = tableFor({}, services, limits);
    const changes: Change[] = diff(this.#table, next);
    this.#table = next;
    const { rows, releasedOwners } = this.tableLimits.apply(changes, next.entries);
    for (const worker of [this.firstWorker, this.secondWorker]) worker.assign(rows);
    this.#mark += 1;
    this.tableLimits.release(releasedOwners, this.#mark);
    this.registry.setAppliedMark(this.#mark);
    return rows;
  }
}

function admitted(worker: AdmissionController, uid: string): Admission {
  const admission = worker.admit(uid);
  return typeof admission === 'string' ? assert.fail(admission) : admission;
}

test('counts a tenant’s connections over its Services and workers until they are released', () => {
  const scenario = new LimiterScenario();
  scenario.serve([WEB, API], { shop: { connections: 2 } });
  const first = admitted(scenario.firstWorker, web);
  admitted(scenario.secondWorker, api);
  assert.equal(scenario.secondWorker.admit(web), 'connection-limit');
  assert.deepEqual([...scenario.tableLimits.openCounts()], [{ tenant: 'shop', connections: 2 }]);
  first.release();
  first.release();
  admitted(scenario.secondWorker, web);
  assert.equal(scenario.firstWorker.admit(web), 'connection-limit');
});

test('a connection that the limit of a Service refuses takes nothing of the tenant’s limits', () => {
  const scenario = new LimiterScenario();
  const settings = {
    limits: { connections: 1, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null },
  };
  scenario.serve([{ ...WEB, settings }, API], { shop: { newConnectionsPerSecond: 3 } });
  admitted(scenario.firstWorker, web);
  for (let attempt = 0; attempt < 10; attempt += 1) assert.equal(scenario.secondWorker.admit(web), 'connection-limit');
  admitted(scenario.secondWorker, api);
  admitted(scenario.firstWorker, api);
  assert.equal(scenario.secondWorker.admit(api), 'rate-limit');
  // The refused connections are not in the count.
  assert.deepEqual([...scenario.tableLimits.openCounts()], [{ tenant: 'shop', connections: 3 }]);
});

test('a new limit counts the connections that are open already', () => {
  const scenario = new LimiterScenario();
  scenario.serve([WEB]);
  const open = [admitted(scenario.firstWorker, web), admitted(scenario.secondWorker, web)];
  scenario.serve([WEB], { shop: { connections: 2 } });
  assert.equal(scenario.firstWorker.admit(web), 'connection-limit');
  open[0]?.release();
  admitted(scenario.firstWorker, web);
  scenario.serve([WEB]);
  admitted(scenario.firstWorker, web);
});

test('frees the connections of a dead worker, and gives its slot to the next worker', () => {
  const scenario = new LimiterScenario();
  scenario.serve([WEB], { shop: { connections: 2 } });
  admitted(scenario.firstWorker, web);
  admitted(scenario.secondWorker, web);
  scenario.registry.removeWorker(2);
  scenario.secondWorker = new AdmissionController(scenario.registry.addWorker(3));
  scenario.secondWorker.assign(scenario.tableLimits.allRows());
  admitted(scenario.secondWorker, web);
  assert.equal(scenario.firstWorker.admit(web), 'connection-limit');
});

test('open connections stay with the former tenant of a Service, and a disputed Service keeps its former tenant’s limits', () => {
  const scenario = new LimiterScenario();
  const shop = { connections: 1 };
  scenario.serve([{ ...WEB, tenant: 'shop' }], { shop });
  const former = admitted(scenario.firstWorker, web);
  scenario.serve(
    [
      { ...WEB, tenant: null },
      { ...API, tenant: 'shop' },
    ],
    { shop },
  );
  assert.equal(scenario.firstWorker.admit(web), 'connection-limit');
  scenario.serve(
    [
      { ...WEB, tenant: 'game' },
      { ...API, tenant: 'shop' },
    ],
    { shop },
  );
  admitted(scenario.firstWorker, web);
  assert.equal(scenario.firstWorker.admit(api), 'connection-limit');
  former.release();
  admitted(scenario.firstWorker, api);
});

test('reuses a row only when its former owner has no open connection', () => {
  const scenario = new LimiterScenario();
  const [first] = scenario.serve([WEB], { shop: { connections: 1 } });
  const open = admitted(scenario.firstWorker, web);
  scenario.serve([]);
  const [second] = scenario.serve([{ ...API, tenant: 'game' }], { game: {} });
  assert.notEqual(second?.[1], first?.[1]);
  open.release();
  scenario.serve([]);
  const used = new Set([...(first ?? []), ...(second ?? [])]);
  const [third] = scenario.serve([{ ...WEB, tenant: 'third' }]);
  assert.ok(used.has(third?.[1] ?? 0));
  for (let more = 0; more < 3; more += 1) admitted(scenario.secondWorker, web);
});

test('counts connections per client over all workers, for IPv6 per /64, until they are released', () => {
  const scenario = new LimiterScenario();
  scenario.serve([WEB], {});
  const route = {
    service: { uid: web },
    settings: { limits: { connectionsPerClient: 1 } },
  } as unknown as Parameters<Admission['admitClient']>[0];
  const open = (worker: AdmissionController, address: string): Admission | undefined => {
    const admission = admitted(worker, web);
    return admission.admitClient(route, { address, port: 1 }) ? admission : undefined;
  };
  const first = open(scenario.firstWorker, '2001:db8::1');
  assert.ok(first);
  assert.equal(open(scenario.secondWorker, '2001:db8::2'), undefined);
  assert.ok(open(scenario.secondWorker, '192.0.2.1'));
  first.release();
  assert.ok(open(scenario.secondWorker, '2001:db8::2'));
});

test('a tenant without a limit leaves a quarter of the connections, of which another tenant gets a part', () => {
  const scenario = new LimiterScenario(400);
  scenario.serve([
    { ...WEB, tenant: 'greedy' },
    { ...API, tenant: 'modest' },
  ]);
  const admissions: Admission[] = [];
  const admitAll = (worker: AdmissionController, uid: string): number => {
    const before = admissions.length;
    for (let admission = worker.admit(uid); typeof admission !== 'string'; admission = worker.admit(uid))
      admissions.push(admission);
    return admissions.length - before;
  };
  assert.equal(admitAll(scenario.firstWorker, web), 300);
  assert.equal(scenario.secondWorker.admit(web), 'no-descriptors');
  const share = admitAll(scenario.secondWorker, api);
  assert.ok(share >= 70 && share < 100, `${share}`);
  for (const admission of admissions.splice(0)) admission.release();
  assert.equal(admitAll(scenario.secondWorker, web), 300);
});
