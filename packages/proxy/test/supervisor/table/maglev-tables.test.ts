import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, createMatcher, diff, EMPTY_TABLE, patchMatcher, type RoutingTable } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MaglevTables } from '../../../src/supervisor/table/maglev-tables.ts';
import type { WorkerCommand } from '../../../src/worker/messages.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { type TestService, tableFor } from '../../fixtures/tables.ts';

type MaglevCommand = Extract<WorkerCommand, { kind: 'maglev' }>;

const NODE = { a: '127.0.0.1' };
const KEY = `TCP/127.0.0.1/${PORT}`;

function webWith(count: number, over: Partial<TestService> = {}): TestService {
  const endpoints = Array.from({ length: count }, (_, i) => ({ address: `10.0.0.${i}`, port: 80 }));
  return { name: 'web', port: PORT, endpoints, settings: { algorithm: 'maglev' }, ...over };
}

function createTables(): {
  tables: MaglevTables;
  clock: ManualClock;
  commands: MaglevCommand[];
  serve(...services: TestService[]): void;
} {
  const clock = new ManualClock();
  const commands: MaglevCommand[] = [];
  const matcher = createMatcher(EMPTY_TABLE, 'a');
  const post = (command: WorkerCommand): void => void commands.push(command as MaglevCommand);
  const tables = new MaglevTables({ routes: matcher.routes, clock, post });
  let table: RoutingTable = EMPTY_TABLE;
  const serve = (...services: TestService[]): void => {
    const next = tableFor(NODE, services);
    const changes: readonly Change[] = diff(table, next);
    table = next;
    tables.onRoutesChanged(patchMatcher(matcher, changes));
  };
  return { tables, clock, commands, serve };
}

const endpointsIn = (command: MaglevCommand | undefined): number =>
  command?.slots === undefined ? 0 : new Set(new Uint16Array(command.slots)).size;

test('computes a table of its endpoints for a listener that uses Maglev, and none for another listener', async () => {
  const { tables, clock, commands, serve } = createTables();
  serve(webWith(3), webWith(3, { name: 'api', port: PORT + 1, settings: {} }));
  await clock.advance(0);
  assert.deepEqual(
    commands.map(({ listeners }) => listeners),
    [[KEY]],
  );
  assert.equal(endpointsIn(commands[0]), 3);
  assert.deepEqual(tables.commandsForNewWorker(), commands, 'a new worker gets the same memory');
  assert.equal(clock.pendingTimers, 0);
});

test('computes at most ten tables a second, the last one with the last endpoints', async () => {
  const { clock, commands, serve } = createTables();
  for (let ms = 0; ms < 1_000; ms += 10) {
    serve(webWith(2 + (ms % 70) / 10));
    await clock.advance(10);
  }
  serve(webWith(9));
  await clock.advance(100);
  assert.ok(commands.length >= 10 && commands.length <= 12, `${commands.length} tables`);
  assert.equal(endpointsIn(commands.at(-1)), 9);
});

test('computes the tables of many ports one by one', async () => {
  const { tables, clock, commands, serve } = createTables();
  serve(...Array.from({ length: 5 }, (_, i) => webWith(2, { name: `web-${i}`, port: PORT + i })));
  assert.equal(commands.length, 0);
  assert.deepEqual(tables.commandsForNewWorker(), [], 'a stale table is not sent to a new worker');
  await clock.advance(0);
  assert.equal(commands.length, 5);
});

test('removes the table of a listener with one endpoint or another algorithm', async () => {
  const { tables, clock, commands, serve } = createTables();
  serve(webWith(3));
  await clock.advance(0);
  serve(webWith(1));
  await clock.advance(100);
  assert.deepEqual(commands.at(-1), { kind: 'maglev', listeners: [KEY], slots: undefined });
  serve(webWith(3));
  await clock.advance(100);
  serve(webWith(3, { settings: { algorithm: 'first' } }));
  assert.deepEqual(commands.at(-1), { kind: 'maglev', listeners: [KEY], slots: undefined });
  assert.deepEqual(tables.commandsForNewWorker(), []);
  assert.equal(clock.pendingTimers, 0);
});

test('computes nothing after close', async () => {
  const { tables, clock, commands, serve } = createTables();
  serve(webWith(3));
  tables.close();
  await clock.advance(1_000);
  assert.deepEqual(commands, []);
  assert.equal(clock.pendingTimers, 0);
});
