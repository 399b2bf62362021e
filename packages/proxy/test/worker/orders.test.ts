import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Change, Cutoff, Endpoint } from '@weir/model';
import { connectRaw, echoServer } from '@weir/testkit';
import type { Door, PiecesOrder } from '../../src/worker/messages.ts';
import { inPieces } from '../../src/workers/table-pieces.ts';
import { type LoneWorker, loneWorker } from '../fixtures/lone-worker.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, web } from '../fixtures/serving.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';

const SERVICES = 2_000;

describe('a worker that is given a large table', () => {
  test('serves what is open between its pieces, and answers and opens what comes behind it after the last', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectRaw(worker);
    const added = late([endpointOf(backend)]);
    const order = largeTable(worker, added);
    assert.ok(order.ends.length > 300, `${order.ends.length} pieces`);
    const door: Door = { ...worker.door, id: 2, key: `TCP/${worker.host}/${added.port}`, port: added.port };
    worker.follow(order);
    worker.follow({ kind: 'listen', door });
    worker.follow({ kind: 'mark', sequence: 7 });
    for (const word of ['one', 'two', 'three']) {
      await client.send(word);
      assert.equal((await client.take(word.length)).toString(), word);
    }
    assert.equal(isDone(worker), false, 'served before all was done');
    let turns = 0;
    for (; !isDone(worker); turns += 1) await nextTurn();
    assert.ok(turns > 100, `${turns} turns`);
    while (!worker.answers.some((answer) => answer.kind === 'listening' && answer.door === door.id)) await nextTurn();
    await using newcomer = await connectRaw({ host: worker.host, port: added.port });
    await newcomer.send('new');
    assert.equal((await newcomer.take(3)).toString(), 'new');
    worker.follow({ kind: 'unlisten', door });
  });

  test('cuts off at once', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectRaw(worker);
    await client.send('a');
    await client.take(1);
    worker.follow(largeTable(worker, late([])));
    worker.follow({ kind: 'mark', sequence: 7 });
    worker.follow({ kind: 'cutoffs', cutoffs: [cutoff], now: 1 });
    assert.deepEqual([isDone(worker), worker.outcomes()], [false, { 'cut-off': 1 }]);
    await client.ended;
  });

  test('ends what is open at once, and what a listener lets in that is to be closed behind the table', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectRaw(worker);
    await client.send('a');
    await client.take(1);
    worker.follow(largeTable(worker, late([])));
    worker.follow({ kind: 'unlisten', door: worker.door });
    worker.follow({ kind: 'sever', outcome: 'drained' });
    worker.follow({ kind: 'mark', sequence: 7 });
    assert.deepEqual([isDone(worker), worker.outcomes()], [false, { drained: 1 }]);
    await client.ended;
    await using later = await connectRaw(worker);
    await later.send('b');
    await later.take(1);
    assert.equal(isDone(worker), false);
    await later.ended;
    assert.deepEqual(worker.outcomes(), { drained: 2 });
  });
});

/** To whose clock one piece takes a whole turn. */
function slowWorker(backend: { readonly host: string; readonly port: number }): Promise<LoneWorker> {
  let readings = 0;
  return loneWorker(web([endpointOf(backend)]), { turnClock: () => readings++ });
}

const isDone = (worker: LoneWorker): boolean => worker.answers.some(({ kind }) => kind === 'done');

/** Its id comes last. */
const late = (endpoints: readonly Endpoint[]): TestService => ({ name: 'zzz', port: PORT + 1, endpoints });

function largeTable({ host }: LoneWorker, last: TestService): PiecesOrder {
  const many = Array.from({ length: SERVICES }, (_, index) => ({
    name: `s${index}`,
    port: 10_000 + index,
    endpoints: [],
  }));
  const table = tableFor({ a: host }, [...many, last]);
  const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  const sent = inPieces({ kind: 'table', changes, slots: [[uidOf(last), 2]] });
  assert.ok(sent.kind === 'pieces');
  return sent;
}

const cutoff: Cutoff = {
  uid: 'c',
  name: 'unpaid',
  target: { kind: 'tenant', tenant: 'shop' },
  message: '',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: null,
};
