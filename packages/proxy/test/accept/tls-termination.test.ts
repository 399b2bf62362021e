// TLS that ends here: a Service with a certificate, its clients, and what reaches the endpoint.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { connectClient, discardServer, echoServer, eventually, patternServer, type TestClient } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';
import { captureNodeClientHello, clientHelloRecord, serverNameExtension } from '../protocol/client-hello-bytes.ts';

const MEGABYTE = 1_048_576;

const secured = (worker: WorkerInTest, tls: ConnectionOptions = {}, more: object = {}): Promise<TestClient> =>
  connectClient({ host: worker.host, port: worker.port, tls: { ...TRUSTING_CLIENT, ...tls }, ...more });

for (const { name, transport } of TRANSPORTS) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${name}: ${version} ends here, and the plaintext is what the endpoint gets and what is counted`, async () => {
      await using backend = await echoServer();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await secured(worker, { minVersion: version, maxVersion: version });
      await client.send('hello');
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
      assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [5, 5, 0]);
      assert.deepEqual(worker.reported, []);
    });

    test(`${name}: ${version}: a FIN without close_notify is no end: the endpoint is reset`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await secured(worker, { minVersion: version, maxVersion: version });
      const endpoint = await backend.next();
      await client.send('half of it');
      assert.equal((await endpoint.take(10)).toString(), 'half of it');
      client.sendBareFin();
      assert.deepEqual(await endpoint.ended, { kind: 'error', code: 'ECONNRESET' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
      assert.equal(worker.row[ACTIVE], 0);
    });

    test(`${name}: ${version}: whoever has been told the end may answer it by a FIN alone`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await secured(worker, { minVersion: version, maxVersion: version });
      const endpoint = await backend.next();
      await endpoint.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      client.sendBareFin();
      assert.deepEqual(await endpoint.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
    });

    test(`${name}: ${version}: either side may go on after the end of the other`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using first = await secured(worker, { minVersion: version, maxVersion: version });
      const one = await backend.next();
      await first.send('question');
      await first.end();
      assert.deepEqual(await one.ended, { kind: 'end' });
      await one.send('late answer');
      await one.end();
      assert.deepEqual(await first.ended, { kind: 'end' });
      assert.equal(first.buffered.toString(), 'late answer');
      await using second = await secured(worker, { minVersion: version, maxVersion: version });
      const two = await backend.next();
      await two.end();
      assert.deepEqual(await second.ended, { kind: 'end' });
      await second.send('late question');
      assert.equal((await two.take(13)).toString(), 'late question');
      await second.end();
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 2 }));
      assert.deepEqual([worker.row[RECEIVED], worker.row[SENT]], [21, 11]);
    });
  }

  test(`${name}: an endpoint that resets resets its client`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await secured(worker);
    const endpoint = await backend.next();
    await endpoint.send('half of it');
    await client.take(10);
    endpoint.reset();
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-endpoint': 1 }));
  });

  test(`${name}: a client that resets resets its endpoint`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await secured(worker);
    const endpoint = await backend.next();
    await client.send('x');
    await endpoint.take(1);
    client.reset();
    assert.deepEqual(await endpoint.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
  });

  test(`${name}: a mebibyte each way, with readers that stop and go, is whole, and counted to the byte`, async () => {
    await using source = await patternServer({ bytes: MEGABYTE, seed: 5 });
    await using sink = await discardServer();
    using down = await startWorkerInTest(webService([endpointOf(source)], terminatingTls()), { transport });
    using up = await startWorkerInTest(webService([endpointOf(sink)], terminatingTls()), { transport });
    await using reader = await secured(down, {}, { expectPattern: 5 });
    for (let wanted = 100_000; wanted < MEGABYTE; wanted += 100_000) {
      reader.pause();
      await new Promise((resolve) => setImmediate(resolve));
      reader.resume();
      await reader.waitForBytes(wanted);
    }
    assert.deepEqual(await reader.ended, { kind: 'end' });
    assert.equal(reader.received, MEGABYTE);
    await reader.end();
    await using writer = await secured(up);
    await writer.sendPattern({ bytes: MEGABYTE, seed: 9 });
    await writer.end();
    await writer.ended;
    await eventually(() => assert.deepEqual([down.outcomes(), up.outcomes()], [{ completed: 1 }, { completed: 1 }]));
    assert.deepEqual([down.row[RECEIVED], down.row[SENT]], [0, MEGABYTE]);
    assert.deepEqual([up.row[RECEIVED], up.row[SENT]], [MEGABYTE, 0]);
  });

  test(`${name}: garbage behind a hello, nothing behind it, and a client that leaves, are failed handshakes`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    const hello = clientHelloRecord({ extensions: [serverNameExtension('web.example')] });
    await using noisy = await connectClient({ host: worker.host, port: worker.port });
    await noisy.send(Buffer.concat([hello, Buffer.alloc(1_000, 'x')]));
    await noisy.ended;
    await using leaving = await connectClient({ host: worker.host, port: worker.port });
    await leaving.send(realHello);
    await leaving.take(5);
    leaving.reset();
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 2 }));
    await using closing = await connectClient({ host: worker.host, port: worker.port });
    await closing.send(realHello);
    await closing.take(5);
    await closing.end();
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 3 }));
    await using slow = await connectClient({ host: worker.host, port: worker.port });
    await slow.send(realHello);
    await slow.take(5);
    assert.equal(worker.row[ACTIVE], 1);
    worker.tick(12);
    assert.equal((await slow.ended).kind, 'error');
    assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 3, 'prelude-timeout': 1 });
    assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [0, 0, 0]);
    assert.deepEqual([backend.acceptedConnections, worker.reported], [0, []]);
  });

  test(`${name}: a hello in pieces of one byte, and one with what follows it in the same segment`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    for (const byte of realHello) await client.send(Uint8Array.of(byte));
    // ServerHello of TLS 1.3.
    assert.deepEqual([...(await client.take(3))], [22, 3, 3]);
  });

  test(`${name}: without a version in common nobody is served`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    await client.send(clientHelloRecord({ version: 0x0302, extensions: [serverNameExtension('web.example')] }));
    assert.deepEqual([...(await client.take(7))].slice(-2), [2, 70]);
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 1 }));
  });
}

test('while the CAs of its clients have not come nobody is let in, for then nobody would be asked', async () => {
  await using backend = await echoServer();
  const ending = terminatingTls();
  const tls = { secret: 'web', ports: [{ port: PORT, alpn: [] }], clientCaSecret: 'clients' };
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], { ...ending, settings: { ...ending.settings, tls } }),
  );
  await using client = await connectClient({ host: worker.host, port: worker.port });
  await client.send(realHello);
  // The alert `internal_error`.
  assert.deepEqual([...(await client.take(7))].slice(-2), [2, 80]);
  await client.end();
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 1 }));
  assert.equal(backend.acceptedConnections, 0);
});

/** Of a client that can do all that is asked for. */
const realHello = await captureNodeClientHello(TRUSTING_CLIENT);
