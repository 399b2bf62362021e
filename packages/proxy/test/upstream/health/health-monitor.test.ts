// What the main thread decides and tells, with a clock that the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createMatcher,
  diff,
  type Endpoint,
  endpointKey,
  type HealthCheck,
  patchMatcher,
  type RoutingTable,
} from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { failed, PASSED } from '../../../src/upstream/health/check.ts';
import { HealthMonitor } from '../../../src/upstream/health/health-monitor.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

const ENDPOINTS: readonly Endpoint[] = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'].map((address) => ({
  address,
  port: 80,
}));
const KEYS = ENDPOINTS.map(endpointKey);
const LISTENER = `TCP/192.0.2.1/${PORT}`;
const CHECK: HealthCheck = {
  kind: 'tcp',
  intervalMs: 1_000,
  timeoutMs: 500,
  healthyThreshold: 1,
  unhealthyThreshold: 2,
};

interface MonitorSetup {
  readonly clock: ManualClock;
  readonly room: HealthMonitor;
  /** Unused endpoints by listener, as the workers know them. */
  readonly told: Map<string, readonly string[]>;
  readonly down: Set<string>;
  readonly orders: WorkerCommand[];
  made: number;
  serve(...services: TestService[]): void;
  fail(endpoint: string | undefined, failures?: number): Promise<void>;
}

function setUpMonitor(...services: TestService[]): MonitorSetup {
  const clock = new ManualClock();
  const matcher = createMatcher({ entries: new Map() }, 'a');
  let table: RoutingTable = { entries: new Map() };
  const down = new Set<string>();
  const told = new Map<string, readonly string[]>();
  const orders: WorkerCommand[] = [];
  const room = new HealthMonitor({
    routes: matcher.routes,
    clock,
    random: () => 0.5,
    post(order) {
      orders.push(order);
      if (order.kind === 'health') for (const key of order.listeners) told.set(key, order.excluded);
    },
    async runCheck({ endpoint }) {
      made.made += 1;
      return down.has(endpointKey(endpoint)) ? failed('ECONNREFUSED') : PASSED;
    },
  });
  const made: MonitorSetup = {
    clock,
    room,
    told,
    down,
    orders,
    made: 0,
    serve(...served) {
      const next = tableFor({ a: '192.0.2.1' }, served);
      room.onRoutesChanged(patchMatcher(matcher, diff(table, next)));
      table = next;
    },
    async fail(endpoint = '', failures = 3) {
      room.recordPassiveHealth([{ listener: LISTENER, endpoint, succeeded: false, failures }]);
      await clock.advance(100);
    },
  };
  made.serve(...services);
  return made;
}

const web = (endpoints: readonly Endpoint[], over: Partial<TestService> = {}): TestService => ({
  name: 'web',
  port: PORT,
  endpoints,
  ...over,
});

test('an ejected endpoint comes back by time alone, and no timer is left when the room is closed', async () => {
  const { clock, room, told, fail } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0], 2);
  assert.deepEqual(told.get(LISTENER), undefined);
  await fail(KEYS[0], 1);
  assert.deepEqual(told.get(LISTENER), [KEYS[0]]);
  assert.deepEqual(room.commandsForNewWorker(), [
    { kind: 'health', listeners: [LISTENER], unused: [KEYS[0]], failing: [], drained: [] },
  ]);
  await clock.advance(10_000);
  assert.deepEqual(told.get(LISTENER), []);
  assert.deepEqual(room.commandsForNewWorker(), []);
  room.close();
  assert.equal(clock.pendingTimers, 0);
});

test('when all fail, no more than half are left out: those that failed first', async () => {
  const { told, fail, room } = setUpMonitor(web(ENDPOINTS));
  for (const key of [3, 1, 0, 2].map((index) => KEYS[index])) await fail(key);
  assert.deepEqual(told.get(LISTENER), [KEYS[1], KEYS[3]]);
  room.close();
});

test('endpoints that failed together are told together', async () => {
  const { clock, orders, room } = setUpMonitor(web(ENDPOINTS));
  for (const endpoint of KEYS.slice(0, 2)) {
    for (let worker = 0; worker < 4; worker += 1) {
      room.recordPassiveHealth([{ listener: LISTENER, endpoint, succeeded: false, failures: 30 }]);
    }
  }
  await clock.advance(1_000);
  assert.deepEqual(orders, [
    { kind: 'health', listeners: [LISTENER], unused: KEYS.slice(0, 2), failing: [], drained: [] },
  ]);
  room.close();
});

test('an endpoint that leaves is forgotten with what was known of it', async () => {
  const { clock, told, fail, serve, room } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0]);
  serve(web(ENDPOINTS.slice(1)));
  await clock.advance(100);
  assert.deepEqual(told.get(LISTENER), []);
  serve(web(ENDPOINTS));
  await clock.advance(100);
  assert.deepEqual(told.get(LISTENER), []);
  await fail(KEYS[0], 2);
  assert.deepEqual(told.get(LISTENER), [], 'two more failures are not enough');
  room.close();
});

test('what clients of one Service meet says nothing about another Service with the same endpoints', async () => {
  const { told, fail, room } = setUpMonitor(web(ENDPOINTS), { ...web(ENDPOINTS), name: 'other', port: 81 });
  await fail(KEYS[0]);
  assert.deepEqual([...told.keys()], [LISTENER]);
  room.close();
});

test('a new listener of the Service is told what is known, and one that changes hands begins anew', async () => {
  const { clock, told, fail, serve, room } = setUpMonitor(web(ENDPOINTS));
  await fail(KEYS[0]);
  serve();
  told.clear();
  serve({ ...web(ENDPOINTS), name: 'other' });
  await clock.advance(100);
  assert.deepEqual(told.get(LISTENER) ?? [], []);
  room.close();
});

test('checks take an endpoint out and bring it back, and when all fail all are used', async () => {
  const { clock, told, down, room } = setUpMonitor(web(ENDPOINTS, { settings: { healthCheck: CHECK } }));
  down.add(KEYS[0] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(told.get(LISTENER), [KEYS[0]]);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  assert.deepEqual(told.get(LISTENER), []);
  assert.deepEqual(
    [...room.unhealthy()].flatMap(({ endpoints }) => endpoints).map(({ state, used, why }) => [state, used, why]),
    KEYS.map(() => ['failing', true, 'its tcp check fails: ECONNREFUSED']),
  );
  down.clear();
  await clock.advance(3_000);
  assert.deepEqual(told.get(LISTENER), []);
  assert.deepEqual([...room.unhealthy()], []);
  room.close();
  assert.equal(clock.pendingTimers, 0);
});

test('connections to an endpoint that fails its check are given a while if the Service says how long, and another one works', async () => {
  const { clock, orders, down, room, serve, fail } = setUpMonitor(
    web(ENDPOINTS, { settings: { healthCheck: { ...CHECK, drainTimeoutMs: 1_000 } } }),
  );
  const drained = (): readonly string[] =>
    orders.flatMap((order) => (order.kind === 'health' ? [order.draining] : [])).at(-1) ?? [];
  down.add(KEYS[0] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(drained(), [KEYS[0]]);
  assert.deepEqual(room.commandsForNewWorker(), [
    { kind: 'health', listeners: [LISTENER], unused: [KEYS[0]], failing: [KEYS[0]], drained: [KEYS[0]] },
  ]);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  assert.deepEqual(drained(), [], 'all fail');
  down.delete(KEYS[3] ?? '');
  await clock.advance(3_000);
  assert.deepEqual(drained(), KEYS.slice(0, 3));
  await fail(KEYS[3]);
  assert.deepEqual(drained(), [], 'the one that passes takes no connections');
  await clock.advance(10_000);
  assert.deepEqual(drained(), KEYS.slice(0, 3));
  serve(web(ENDPOINTS, { settings: { healthCheck: CHECK } }));
  await clock.advance(100);
  assert.deepEqual(drained(), [], 'the Service no longer says how long');
  room.close();
});

test('nobody is given up for one that is new, or about to fail as well', async () => {
  const settings = { healthCheck: { ...CHECK, drainTimeoutMs: 1_000 } };
  const { clock, orders, down, room, serve } = setUpMonitor(web(ENDPOINTS.slice(0, 3), { settings }));
  await clock.advance(1_400);
  for (const key of KEYS) down.add(key);
  await clock.advance(3_000);
  serve(web(ENDPOINTS, { settings }));
  await clock.advance(3_000);
  const given = orders.filter((order) => order.kind === 'health' && order.draining.length > 0);
  assert.deepEqual(given, []);
  const drained = (): unknown => orders.flatMap((order) => (order.kind === 'health' ? [order.draining] : [])).at(-1);
  for (const [isDown, expected] of [
    [false, KEYS.slice(0, 3)],
    [true, []],
    [false, KEYS.slice(0, 3)],
  ] as const) {
    if (isDown) down.add(KEYS[3] ?? '');
    else down.delete(KEYS[3] ?? '');
    // So long one more answer takes, and no two.
    await clock.advance(1_200);
    assert.deepEqual(drained(), expected);
  }
  room.close();
});

test('checks end when nobody asks for them any more', async () => {
  const room = setUpMonitor(web(ENDPOINTS, { settings: { healthCheck: CHECK } }));
  room.down.add(KEYS[0] ?? '');
  await room.clock.advance(3_000);
  assert.ok(room.made >= 8);
  room.serve(web(ENDPOINTS));
  await room.clock.advance(100);
  const { made } = room;
  await room.clock.advance(10_000);
  assert.equal(room.made, made);
  assert.deepEqual(room.told.get(LISTENER), [], 'what the checks had shown is forgotten');
  room.room.close();
});

test('two Services that ask for the same check of the same endpoints share it; for another one they do not', async () => {
  const asking = (name: string, port: number, healthCheck: HealthCheck = CHECK): TestService =>
    web(ENDPOINTS.slice(0, 1), { name, port, settings: { healthCheck } });
  const shared = setUpMonitor(asking('one', 81), asking('two', 82));
  await shared.clock.advance(10_000);
  assert.ok(shared.made >= 9 && shared.made <= 11, `${shared.made}`);
  shared.room.close();
  const separate = setUpMonitor(asking('one', 81), asking('two', 82, { ...CHECK, kind: 'http', path: '/' }));
  await separate.clock.advance(10_000);
  assert.ok(separate.made >= 18, `${separate.made}`);
  separate.room.close();
});

test('a check over TLS, which takes the main thread longer, counts for several', async () => {
  const many = Array.from({ length: 200 }, (_, index): Endpoint => ({ address: `10.0.1.${index}`, port: 80 }));
  const http: HealthCheck = { ...CHECK, kind: 'http', path: '/' };
  for (const [healthCheck, least, most] of [
    [http, 1_800, 2_000],
    [{ ...http, overTls: true }, 800, 1_000],
  ] as const) {
    const room = setUpMonitor(web(many, { settings: { healthCheck } }));
    await room.clock.advance(10_000);
    assert.ok(room.made >= least && room.made <= most, `${room.made}`);
    room.room.close();
  }
});

test('a UDP port is never checked', async () => {
  const room = setUpMonitor(web(ENDPOINTS, { protocol: 'UDP', settings: { healthCheck: CHECK } }));
  await room.clock.advance(10_000);
  assert.equal(room.made, 0);
  room.room.close();
});
