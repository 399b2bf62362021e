import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { epollTransport } from '../../../src/transport/tcp/epoll-transport.ts';
import { TRANSPORTS } from '../../fixtures/transports.ts';
import { startTestListener } from './test-listener.ts';

for (const { name, transport } of TRANSPORTS) {
  test(`${name}: a stream whose reads are deferred reads once for each \`readNow\`, and by itself when this has ended`, async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next({ reads: false });
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    let calls = 0;
    stream.deferReads(() => calls++);
    stream.readStart();
    await client.send('first');
    await eventually(() => assert.ok(calls > 0));
    assert.equal(events.received, 0);
    stream.readNow();
    assert.equal(events.text, 'first');
    stream.readNow();
    const before = calls;
    await client.send(' second');
    await eventually(() => assert.ok(calls > before));
    stream.deferReads(undefined);
    stream.readNow();
    await client.send(' third');
    await client.end();
    await events.until(() => events.hasEnded);
    assert.equal(events.text, 'first second third');
  });

  test(`${name}: a deferred read waits while reading has stopped`, async () => {
    using listener = await startTestListener(transport);
    const arrival = listener.next({ reads: false });
    await using client = await connectClient({ host: listener.host, port: listener.port });
    const { stream, events } = await arrival;
    let calls = 0;
    stream.deferReads(() => calls++);
    stream.readStart();
    await client.send('first');
    await eventually(() => assert.ok(calls > 0));
    stream.readStop();
    stream.readNow();
    assert.equal(events.received, 0);
    const before = calls;
    stream.readStart();
    await eventually(() => assert.ok(calls > before));
    stream.readNow();
    assert.equal(events.text, 'first');
    stream.deferReads(() => stream.readNow());
    await client.send(' second');
    await client.end();
    await events.until(() => events.hasEnded);
    assert.equal(events.text, 'first second');
  });
}

test('a reset of the client is noticed when the deferred read comes', async () => {
  using listener = await startTestListener(epollTransport);
  const arrival = listener.next({ reads: false });
  await using client = await connectClient({ host: listener.host, port: listener.port });
  const { stream, events } = await arrival;
  let calls = 0;
  stream.deferReads(() => calls++);
  stream.readStart();
  client.reset();
  await eventually(() => assert.ok(calls > 0));
  assert.equal(events.closed, undefined);
  stream.readNow();
  await events.until(() => events.closed !== undefined);
  assert.deepEqual(events.closed, { code: 'ECONNRESET' });
  stream.readNow();
});
