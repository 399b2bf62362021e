import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import type { Change } from '@weir/model';
import { connectRaw, echoServer } from '@weir/testkit';
import { ACTIVE, createSlab, outcomeColumn, rowOf } from '../../src/counters/columns.ts';
import { netTransport } from '../../src/tcp/net-transport.ts';
import type { Transport } from '../../src/tcp/transport.ts';
import { RelayWorker } from '../../src/worker/relay-worker.ts';
import { loopbackAddress } from '../fixtures/loopback.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf, web } from '../fixtures/serving.ts';
import { tableFor, uidOf } from '../fixtures/tables.ts';

const SLOT = 1;

test('a throw in the handling of a connection ends that connection, and no other', async () => {
  await using backend = await echoServer();
  const address = loopbackAddress();
  const answers = new EventEmitter();
  const slab = createSlab();
  const reported: unknown[] = [];
  let bugs = 0;
  const worker = new RelayWorker({
    node: 'a',
    slabs: [slab],
    transport: withBug(() => bugs-- > 0),
    answer: (answer) => answers.emit(answer.kind),
    report: (_what, thrown) => reported.push(thrown),
  });
  const table = tableFor({ a: address }, [web([endpointOf(backend)])]);
  const changes = [...table.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
  const door = { id: 1, key: `TCP/${address}/${PORT}`, address, port: PORT };
  worker.follow({ kind: 'table', changes, slots: [[uidOf({ name: 'web' }), SLOT]] });
  worker.follow({ kind: 'listen', door });
  await once(answers, 'listening');

  await using healthy = await connectRaw({ host: address, port: PORT });
  await healthy.send('a');
  await healthy.take(1);
  bugs = 1;
  await using unlucky = await connectRaw({ host: address, port: PORT });
  await unlucky.send('b');
  assert.deepEqual(await unlucky.ended, { kind: 'error', code: 'ECONNRESET' });
  await healthy.send('c');
  assert.equal((await healthy.take(1)).toString(), 'c');
  const row = rowOf([slab], SLOT);
  assert.deepEqual({ internal: row[outcomeColumn('internal')], active: row[ACTIVE] }, { internal: 1, active: 1 });
  assert.match(String(reported), /a bug/);
  worker.follow({ kind: 'unlisten', door });
  worker.follow({ kind: 'sever', outcome: 'drained' });
});

/** A transport whose streams to endpoints throw when something is written to them, as often as it is asked for. */
function withBug(strikes: () => boolean): Transport {
  return {
    listen: netTransport.listen,
    connect(to, events) {
      const stream = netTransport.connect(to, events);
      const write = stream.write.bind(stream);
      return Object.assign(stream, {
        write(bytes: Uint8Array): number {
          if (strikes()) throw new Error('a bug');
          return write(bytes);
        },
      });
    },
  };
}
