// Many ClientHellos at the same moment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';
import { ACTIVE } from '../../src/metering/counters.ts';
import { TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { uidOf } from '../fixtures/tables.ts';
import { TLS_TRANSPORTS } from '../fixtures/transports.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';
import { captureNodeClientHello } from '../protocol/client-hello-bytes.ts';

const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};
const CLIENTS = 30;

for (const { name, transport } of TLS_TRANSPORTS) {
  test(`${name}: completes handshakes that take many turns of the event loop`, async () => {
    await using backend = await echoServer();
    let now = 0;
    // One millisecond passes whenever the worker looks, so only a few handshakes continue in each turn.
    const sliceClock = (): number => ++now;
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), {
      transport,
      sliceClock,
    });
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, () =>
        connectClient({ host: worker.host, port: worker.port, tls: TRUSTING_CLIENT }),
      ),
    );
    for (const client of clients) {
      await client.send('hello');
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
    }
    await eventually(() => assert.deepEqual(worker.outcomes(), { completed: CLIENTS }));
    assert.deepEqual(worker.reported, []);
  });

  test(`${name}: the rate limit also counts ClientHellos of clients that connected earlier`, async () => {
    await using backend = await echoServer();
    const registry = new LimiterRegistry(1);
    const rows = [registry.allocateRow('service'), registry.allocateRow('tenant')] as const;
    for (const row of rows) registry.configure(row, UNLIMITED);
    const service = webService([endpointOf(backend)], terminatingTls());
    using worker = await startWorkerInTest(service, { transport, limits: registry.addWorker(1) });
    worker.apply({ kind: 'table', changes: [], slots: [], limits: [[uidOf(service), ...rows]] });
    const hello = await captureNodeClientHello(TRUSTING_CLIENT);
    await using client = await connectClient({ host: worker.host, port: worker.port });
    await eventually(() => assert.equal(worker.row[ACTIVE], 1));
    registry.configure(rows[1], { ...UNLIMITED, newConnectionsPerSecond: 0 });
    await client.send(hello);
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    assert.deepEqual([worker.outcomes(), worker.row[ACTIVE]], [{ 'rate-limit': 1 }, 0]);
  });
}
