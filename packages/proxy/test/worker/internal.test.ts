import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, echoServer } from '@weir/testkit';
import { ACTIVE } from '../../src/counters/columns.ts';
import { netTransport } from '../../src/tcp/net-transport.ts';
import type { Transport } from '../../src/tcp/transport.ts';
import { loneWorker } from '../fixtures/lone-worker.ts';
import { endpointOf, web } from '../fixtures/serving.ts';

test('a throw in the handling of a connection ends that connection, and no other', async () => {
  await using backend = await echoServer();
  let bugs = 0;
  using worker = await loneWorker(web([endpointOf(backend)]), { transport: withBug(() => bugs-- > 0) });
  await using healthy = await connectRaw(worker);
  await healthy.send('a');
  await healthy.take(1);
  bugs = 1;
  await using unlucky = await connectRaw(worker);
  await unlucky.send('b');
  assert.deepEqual(await unlucky.ended, { kind: 'error', code: 'ECONNRESET' });
  await healthy.send('c');
  assert.equal((await healthy.take(1)).toString(), 'c');
  assert.deepEqual(worker.outcomes(), { internal: 1 });
  assert.equal(worker.row[ACTIVE], 1);
  assert.match(String(worker.reported), /a bug/);
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
