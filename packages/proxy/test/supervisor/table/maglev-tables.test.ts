import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, createMatcher, diff, EMPTY_TABLE, patchMatcher, type RoutingTable } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MaglevTables } from '../../../src/supervisor/table/maglev-tables.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

type MaglevOrder = Extract<WorkerCommand, { kind: 'maglev' }>;

const NODE = { a: '127.0.0.1' };
const KEY = `TCP/127.0.0.1/${PORT}`;

function webWith(count: number, over: Partial<TestService> = {}): TestService {
  const endpoints = Array.from({ length: count }, (_, i) => ({ address: `10.0.0.${i}`, port: 80 }));
  return { name: 'web', port: PORT, endpoints, settings: { algorithm: 'maglev' }, ...over };
}

function roomOf(): {
  room: MaglevTables;
  clock: ManualClock;
  orders: MaglevOrder[];
  serve(...services: TestService[]): void;
} {
  const clock = new ManualClock();
  const orders: MaglevOrder[] = [];
  const matcher = createMatcher(EMPTY_TABLE, 'a');
  const post = (order: WorkerCommand): void => void orders.push(order as MaglevOrder);
  const room = new MaglevTables({ routes: matcher.routes, clock, post });
  let table: RoutingTable = EMPTY_TABLE;
  const serve = (...services: TestService[]): void => {
    const next = tableFor(NODE, services);
    const changes: readonly Change[] = diff(table, next);
    table = next;
    room.onRoutesChanged(patchMatcher(matcher, changes));
  };
  return { room, clock, orders, serve };
}

const chosenIn = (order: MaglevOrder | undefined): number =>
  order?.slots === undefined ? 0 : new Set(new Uint16Array(order.slots)).size;

test('a listener that uses maglev gets a table of its endpoints, and those that do not get none', async () => {
  const { room, clock, orders, serve } = roomOf();
  serve(webWith(3), webWith(3, { name: 'api', port: PORT + 1, settings: {} }));
  await clock.advance(0);
  assert.deepEqual(
    orders.map(({ listeners }) => listeners),
    [[KEY]],
  );
  assert.equal(chosenIn(orders[0]), 3);
  assert.deepEqual(room.commandsForNewWorker(), orders, 'a worker that starts later gets the same memory');
  assert.equal(clock.pendingTimers, 0);
});

test('endpoints that change all the time are computed ten times a second, and the last ones are among them', async () => {
  const { clock, orders, serve } = roomOf();
  for (let ms = 0; ms < 1_000; ms += 10) {
    serve(webWith(2 + (ms % 70) / 10));
    await clock.advance(10);
  }
  serve(webWith(9));
  await clock.advance(100);
  assert.ok(orders.length >= 10 && orders.length <= 12, `${orders.length} tables`);
  assert.equal(chosenIn(orders.at(-1)), 9);
});

test('many that change at once are computed one in a turn', async () => {
  const { room, clock, orders, serve } = roomOf();
  serve(...Array.from({ length: 5 }, (_, i) => webWith(2, { name: `web-${i}`, port: PORT + i })));
  assert.equal(orders.length, 0);
  assert.deepEqual(room.commandsForNewWorker(), [], 'what is not computed yet comes when it is');
  await clock.advance(0);
  assert.equal(orders.length, 5);
});

test('who leaves maglev, or has one endpoint only, is told that there is no table', async () => {
  const { room, clock, orders, serve } = roomOf();
  serve(webWith(3));
  await clock.advance(0);
  serve(webWith(1));
  await clock.advance(100);
  assert.deepEqual(orders.at(-1), { kind: 'maglev', listeners: [KEY], slots: undefined });
  serve(webWith(3));
  await clock.advance(100);
  serve(webWith(3, { settings: { algorithm: 'first' } }));
  assert.deepEqual(orders.at(-1), { kind: 'maglev', listeners: [KEY], slots: undefined });
  assert.deepEqual(room.commandsForNewWorker(), []);
  assert.equal(clock.pendingTimers, 0);
});

test('a closed one computes nothing any more', async () => {
  const { room, clock, orders, serve } = roomOf();
  serve(webWith(3));
  room.close();
  await clock.advance(1_000);
  assert.deepEqual(orders, []);
  assert.equal(clock.pendingTimers, 0);
});
