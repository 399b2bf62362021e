import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Change, Endpoint, Suspension } from '@weir/model';
import { connectClient, echoServer } from '@weir/testkit';
import { packTable } from '../../src/supervisor/table-delivery.ts';
import type { ListenerConfig, PackedTableCommand } from '../../src/worker/messages.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const SERVICES = 2_000;

describe('a worker that applies a large table', () => {
  test('relays between the batches, and applies later commands after the last batch', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectClient(worker);
    const added = late([endpointOf(backend)]);
    const command = largeTable(worker, added);
    assert.ok(command.ends.length > 300, `${command.ends.length} batches`);
    const listener: ListenerConfig = {
      ...worker.listener,
      id: 2,
      key: `TCP/${worker.host}/${added.port}`,
      port: added.port,
    };
    worker.apply(command);
    worker.apply({ kind: 'open-listener', listener });
    worker.apply({ kind: 'mark', sequence: 7 });
    for (const word of ['one', 'two', 'three']) {
      await client.send(word);
      assert.equal((await client.take(word.length)).toString(), word);
    }
    assert.equal(isDone(worker), false, 'the table is not applied yet');
    let turns = 0;
    for (; !isDone(worker); turns += 1) await nextTurn();
    assert.ok(turns > 100, `${turns} turns`);
    while (!worker.answers.some((answer) => answer.kind === 'listening' && answer.listenerId === listener.id))
      await nextTurn();
    await using newClient = await connectClient({ host: worker.host, port: added.port });
    await newClient.send('new');
    assert.equal((await newClient.take(3)).toString(), 'new');
    worker.apply({ kind: 'close-listener', listener });
  });

  test('applies suspensions at once', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectClient(worker);
    await client.send('a');
    await client.take(1);
    worker.apply(largeTable(worker, late([])));
    worker.apply({ kind: 'mark', sequence: 7 });
    worker.apply({ kind: 'suspensions', suspensions: [suspension], now: 1 });
    assert.deepEqual([isDone(worker), worker.outcomes()], [false, { 'cut-off': 1 }]);
    await client.ended;
  });

  test('terminates open connections at once, and those of a listener that closes after the table', async () => {
    await using backend = await echoServer();
    using worker = await slowWorker(backend);
    await using client = await connectClient(worker);
    await client.send('a');
    await client.take(1);
    worker.apply(largeTable(worker, late([])));
    worker.apply({ kind: 'close-listener', listener: worker.listener });
    worker.apply({ kind: 'terminate', outcome: 'drained' });
    worker.apply({ kind: 'mark', sequence: 7 });
    assert.deepEqual([isDone(worker), worker.outcomes()], [false, { drained: 1 }]);
    await client.ended;
    await using later = await connectClient(worker);
    await later.send('b');
    await later.take(1);
    assert.equal(isDone(worker), false);
    await later.ended;
    assert.deepEqual(worker.outcomes(), { drained: 2 });
  });
});

/** Starts a worker whose clock advances at each reading, so that each batch takes a whole turn of the event loop. */
function slowWorker(backend: { readonly host: string; readonly port: number }): Promise<WorkerInTest> {
  let readings = 0;
  return startWorkerInTest(webService([endpointOf(backend)]), { sliceClock: () => readings++ });
}

const isDone = (worker: WorkerInTest): boolean => worker.answers.some(({ kind }) => kind === 'mark-reached');

/** Returns a Service whose id sorts after all other ids. */
const late = (endpoints: readonly Endpoint[]): TestService => ({ name: 'zzz', port: PORT + 1, endpoints });

function largeTable({ host }: WorkerInTest, last: TestService): PackedTableCommand {
  const many = Array.from({ length: SERVICES }, (_, index) => ({
    name: `s${index}`,
    port: 10_000 + index,
    endpoints: [],
  }));
  const table = tableFor({ a: host }, [...many, last]);
  const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  const sent = packTable({ kind: 'table', changes, slots: [[uidOf(last), 2]] });
  assert.ok(sent.kind === 'packed-table');
  return sent;
}

const suspension: Suspension = {
  uid: 'c',
  name: 'unpaid',
  target: { kind: 'tenant', tenant: 'shop' },
  message: '',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: null,
};
