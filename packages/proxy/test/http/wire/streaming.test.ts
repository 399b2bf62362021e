// Tests that parts of bodies are relayed at once in both directions, and that a stream stays open while anything flows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { ACTIVE } from '../../../src/metering/counters.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../../fixtures/services.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startWorkerInTest } from '../../fixtures/worker-in-test.ts';

const HTTP = { settings: { httpPorts: [PORT], idleTimeoutMs: 10_000 } };
const EVENT_STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n';

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: relays server-sent events one by one, for longer than the idle timeout`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], HTTP), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    await client.send('GET /events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n');
    const endpoint = await backend.next();
    await endpoint.take('\r\n\r\n');
    await endpoint.send(EVENT_STREAM_HEAD);
    await client.take(/\r\n\r\n/);
    for (let event = 0; event < 4; event += 1) {
      await endpoint.send(`9\r\ndata: ${event}\n\n\r\n`);
      assert.equal((await client.take(/\n\n\r\n/)).toString(), `9\r\ndata: ${event}\n\n\r\n`);
      worker.tick(8);
    }
    assert.equal(worker.row[ACTIVE], 1);
    worker.tick(12);
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.equal(worker.row[ACTIVE], 0));
  });

  test(`${name}: relays both bodies at the same time`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], HTTP), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    await client.send('POST /chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    const endpoint = await backend.next();
    await endpoint.take('\r\n\r\n');
    await endpoint.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    await client.take(/\r\n\r\n/);
    for (const word of ['one', 'two', 'six']) {
      await client.send(`3\r\n${word}\r\n`);
      assert.equal((await endpoint.take(`${word}\r\n`)).toString(), `3\r\n${word}\r\n`);
      await endpoint.send(`3\r\n${word}\r\n`);
      assert.equal((await client.take(new RegExp(`${word}\r\n`))).toString(), `3\r\n${word}\r\n`);
    }
    await client.send('0\r\n\r\n');
    await endpoint.take('0\r\n\r\n');
    await endpoint.send('0\r\n\r\n');
    await client.take(/0\r\n\r\n/);
    // RFC 9112 §9.3: both messages are complete. The endpoint has answered before the end of the request, so the client's
    // connection ends.
    assert.deepEqual(await client.ended, { kind: 'end' });
  });
}
