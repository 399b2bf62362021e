import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, diff, EMPTY_TABLE, type RoutingTable, type TenantLimits } from '@weir/model';
import type { Admission } from '../../src/limits/admission.ts';
import { AdmissionController, type LimiterRows } from '../../src/limits/admission.ts';
import { LimiterRegistry, TableLimits } from '../../src/limits/limiter-registry.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const WEB: TestService = { name: 'web', port: 80, endpoints: [] };
const API: TestService = { name: 'api', port: 81, endpoints: [] };
const web = uidOf(WEB);
const api = uidOf(API);

/** A main thread and two workers without their threads. */
class LimiterScenario {
  readonly registry: LimiterRegistry;
  readonly tableLimits: TableLimits;
  readonly a: AdmissionController;
  b: AdmissionController;
  #table: RoutingTable = EMPTY_TABLE;
  #mark = 0;

  constructor(places?: number) {
    this.registry = new LimiterRegistry(2, places);
    this.tableLimits = new TableLimits(this.registry);
    this.a = new AdmissionController(this.registry.addWorker(1));
    this.b = new AdmissionController(this.registry.addWorker(2));
  }

  serve(services: readonly TestService[], limits: Record<string, TenantLimits> = {}): LimiterRows[] {
    const next = tableFor({}, services, limits);
    const changes: Change[] = diff(this.#table, next);
    this.#table = next;
    const { rows, left } = this.tableLimits.apply(changes, next.entries);
    for (const worker of [this.a, this.b]) worker.assign(rows);
    this.#mark += 1;
    this.tableLimits.release(left, this.#mark);
    this.registry.setAppliedMark(this.#mark);
    return rows;
  }
}

function granted(worker: AdmissionController, uid: string): Admission {
  const grant = worker.admit(uid);
  return typeof grant === 'string' ? assert.fail(grant) : grant;
}

test('a limit of the tenant counts over its Services and all workers; what is released can be had again', () => {
  const limits = new LimiterScenario();
  limits.serve([WEB, API], { shop: { connections: 2 } });
  const first = granted(limits.a, web);
  granted(limits.b, api);
  assert.equal(limits.b.admit(web), 'connection-limit');
  assert.deepEqual([...limits.tableLimits.openCounts()], [{ tenant: 'shop', connections: 2 }]);
  first.release();
  first.release();
  granted(limits.b, web);
  assert.equal(limits.a.admit(web), 'connection-limit');
});

test('a limit of the Service only tightens, and what it refuses leaves the tenant its rate', () => {
  const limits = new LimiterScenario();
  const settings = {
    limits: { connections: 1, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null },
  };
  limits.serve([{ ...WEB, settings }, API], { shop: { newConnectionsPerSecond: 3 } });
  granted(limits.a, web);
  for (let attempt = 0; attempt < 10; attempt += 1) assert.equal(limits.b.admit(web), 'connection-limit');
  granted(limits.b, api);
  granted(limits.a, api);
  assert.equal(limits.b.admit(api), 'rate-limit');
  // The refused one has given its places back.
  assert.deepEqual([...limits.tableLimits.openCounts()], [{ tenant: 'shop', connections: 3 }]);
});

test('a limit that changes counts what is open already', () => {
  const limits = new LimiterScenario();
  limits.serve([WEB]);
  const open = [granted(limits.a, web), granted(limits.b, web)];
  limits.serve([WEB], { shop: { connections: 2 } });
  assert.equal(limits.a.admit(web), 'connection-limit');
  open[0]?.release();
  granted(limits.a, web);
  limits.serve([WEB]);
  granted(limits.a, web);
});

test('a worker that dies gives back what it had, and its place goes to the next', () => {
  const limits = new LimiterScenario();
  limits.serve([WEB], { shop: { connections: 2 } });
  granted(limits.a, web);
  granted(limits.b, web);
  limits.registry.removeWorker(2);
  limits.b = new AdmissionController(limits.registry.addWorker(3));
  limits.b.assign(limits.tableLimits.allRows());
  granted(limits.b, web);
  assert.equal(limits.a.admit(web), 'connection-limit');
});

test('connections stay with the tenant that had the Service, and a tenant in dispute goes on paying', () => {
  const limits = new LimiterScenario();
  const shop = { connections: 1 };
  limits.serve([{ ...WEB, tenant: 'shop' }], { shop });
  const old = granted(limits.a, web);
  limits.serve(
    [
      { ...WEB, tenant: null },
      { ...API, tenant: 'shop' },
    ],
    { shop },
  );
  assert.equal(limits.a.admit(web), 'connection-limit');
  limits.serve(
    [
      { ...WEB, tenant: 'game' },
      { ...API, tenant: 'shop' },
    ],
    { shop },
  );
  granted(limits.a, web);
  assert.equal(limits.a.admit(api), 'connection-limit');
  old.release();
  granted(limits.a, api);
});

test('a row is given to another only when nothing of the old owner is open', () => {
  const limits = new LimiterScenario();
  const [first] = limits.serve([WEB], { shop: { connections: 1 } });
  const open = granted(limits.a, web);
  limits.serve([]);
  const [second] = limits.serve([{ ...API, tenant: 'game' }], { game: {} });
  assert.notEqual(second?.[1], first?.[1]);
  open.release();
  limits.serve([]);
  const used = new Set([...(first ?? []), ...(second ?? [])]);
  const [third] = limits.serve([{ ...WEB, tenant: 'third' }]);
  assert.ok(used.has(third?.[1] ?? 0));
  for (let more = 0; more < 3; more += 1) granted(limits.b, web);
});

test('a cap per client counts over all workers, for IPv6 by /64, and is given back', () => {
  const limits = new LimiterScenario();
  limits.serve([WEB], {});
  const route = {
    service: { uid: web },
    settings: { limits: { connectionsPerClient: 1 } },
  } as unknown as Parameters<Admission['admitClient']>[0];
  const from = (worker: AdmissionController, address: string): Admission | undefined => {
    const grant = granted(worker, web);
    return grant.admitClient(route, { address, port: 1 }) ? grant : undefined;
  };
  const first = from(limits.a, '2001:db8::1');
  assert.ok(first);
  assert.equal(from(limits.b, '2001:db8::2'), undefined);
  assert.ok(from(limits.b, '192.0.2.1'));
  first.release();
  assert.ok(from(limits.b, '2001:db8::2'));
});

test('a tenant without a limit leaves a quarter of the places, and another gets some of it; all are given back', () => {
  const limits = new LimiterScenario(400);
  limits.serve([
    { ...WEB, tenant: 'greedy' },
    { ...API, tenant: 'modest' },
  ]);
  const taken: Admission[] = [];
  const takeAll = (worker: AdmissionController, uid: string): number => {
    const before = taken.length;
    for (let grant = worker.admit(uid); typeof grant !== 'string'; grant = worker.admit(uid)) taken.push(grant);
    return taken.length - before;
  };
  assert.equal(takeAll(limits.a, web), 300);
  assert.equal(limits.b.admit(web), 'no-descriptors');
  const share = takeAll(limits.b, api);
  assert.ok(share >= 70 && share < 100, `${share}`);
  for (const grant of taken.splice(0)) grant.release();
  assert.equal(takeAll(limits.b, web), 300);
});
