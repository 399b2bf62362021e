// Tests TLS termination: what reaches the endpoint, what is counted, and how connections end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { connectClient, discardServer, echoServer, eventually, patternServer, type TestClient } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import { TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { TLS_TRANSPORTS } from '../fixtures/transports.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';
import { captureNodeClientHello, clientHelloRecord, serverNameExtension } from '../protocol/client-hello-bytes.ts';

const MEGABYTE = 1_048_576;

const connectTls = (worker: WorkerInTest, tls: ConnectionOptions = {}, more: object = {}): Promise<TestClient> =>
  connectClient({ host: worker.host, port: worker.port, tls: { ...TRUSTING_CLIENT, ...tls }, ...more });

for (const { name, transport } of TLS_TRANSPORTS) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${name}: ${version}: sends the plaintext to the endpoint, and counts the plaintext`, async () => {
      await using backend = await echoServer();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await connectTls(worker, { minVersion: version, maxVersion: version });
      await client.send('hello');
      assert.equal((await client.take(5)).toString(), 'hello');
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
      assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [5, 5, 0]);
      assert.deepEqual(worker.reported, []);
    });

    test(`${name}: ${version}: resets the endpoint after a FIN without close_notify`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await connectTls(worker, { minVersion: version, maxVersion: version });
      const endpoint = await backend.next();
      await client.send('half of it');
      assert.equal((await endpoint.take(10)).toString(), 'half of it');
      client.sendBareFin();
      assert.deepEqual(await endpoint.ended, { kind: 'error', code: 'ECONNRESET' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
      assert.equal(worker.row[ACTIVE], 0);
    });

    test(`${name}: ${version}: accepts a FIN without close_notify from a client that has received close_notify`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using client = await connectTls(worker, { minVersion: version, maxVersion: version });
      const endpoint = await backend.next();
      await endpoint.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      client.sendBareFin();
      assert.deepEqual(await endpoint.ended, { kind: 'end' });
      await eventually(() => assert.deepEqual(worker.outcomes(), { completed: 1 }));
    });

    test(`${name}: ${version}: either side may send after the other side has ended`, async () => {
      await using backend = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
      await using first = await connectTls(worker, { minVersion: version, maxVersion: version });
      const one = await backend.next();
      await first.send('question');
      await first.end();
      assert.deepEqual(await one.ended, { kind: 'end' });
      await one.send('late answer');
      await one.end();
      assert.deepEqual(await first.ended, { kind: 'end' });
      assert.equal(first.buffered.toString(), 'late answer');
      await using second = await connectTls(worker, { minVersion: version, maxVersion: version });
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

  test(`${name}: resets the client when the endpoint resets`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectTls(worker);
    const endpoint = await backend.next();
    await endpoint.send('half of it');
    await client.take(10);
    endpoint.reset();
    assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-endpoint': 1 }));
  });

  test(`${name}: resets the endpoint when the client resets`, async () => {
    await using backend = await scriptedEndpoint();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectTls(worker);
    const endpoint = await backend.next();
    await client.send('x');
    await endpoint.take(1);
    client.reset();
    assert.deepEqual(await endpoint.ended, { kind: 'error', code: 'ECONNRESET' });
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
  });

  test(`${name}: relays a mebibyte each way to readers that pause, and counts every byte`, async () => {
    await using source = await patternServer({ bytes: MEGABYTE, seed: 5 });
    await using sink = await discardServer();
    using download = await startWorkerInTest(webService([endpointOf(source)], terminatingTls()), { transport });
    using upload = await startWorkerInTest(webService([endpointOf(sink)], terminatingTls()), { transport });
    await using reader = await connectTls(download, {}, { expectPattern: 5 });
    for (let wanted = 100_000; wanted < MEGABYTE; wanted += 100_000) {
      reader.pause();
      await new Promise((resolve) => setImmediate(resolve));
      reader.resume();
      await reader.waitForBytes(wanted);
    }
    assert.deepEqual(await reader.ended, { kind: 'end' });
    assert.equal(reader.received, MEGABYTE);
    await reader.end();
    await using writer = await connectTls(upload);
    await writer.sendPattern({ bytes: MEGABYTE, seed: 9 });
    await writer.end();
    await writer.ended;
    await eventually(() =>
      assert.deepEqual([download.outcomes(), upload.outcomes()], [{ completed: 1 }, { completed: 1 }]),
    );
    assert.deepEqual([download.row[RECEIVED], download.row[SENT]], [0, MEGABYTE]);
    assert.deepEqual([upload.row[RECEIVED], upload.row[SENT]], [MEGABYTE, 0]);
  });

  test(`${name}: counts a failed handshake after garbage, a reset or an end, and a timeout after silence`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    const hello = clientHelloRecord({ extensions: [serverNameExtension('web.example')] });
    await using garbled = await connectClient({ host: worker.host, port: worker.port });
    await garbled.send(Buffer.concat([hello, Buffer.alloc(1_000, 'x')]));
    await garbled.ended;
    await using resetting = await connectClient({ host: worker.host, port: worker.port });
    await resetting.send(realHello);
    await resetting.take(5);
    resetting.reset();
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 2 }));
    await using closing = await connectClient({ host: worker.host, port: worker.port });
    await closing.send(realHello);
    await closing.take(5);
    await closing.end();
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 3 }));
    await using silent = await connectClient({ host: worker.host, port: worker.port });
    await silent.send(realHello);
    await silent.take(5);
    assert.equal(worker.row[ACTIVE], 1);
    worker.tick(12);
    assert.equal((await silent.ended).kind, 'error');
    assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 3, 'prelude-timeout': 1 });
    assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [0, 0, 0]);
    assert.deepEqual([backend.acceptedConnections, worker.reported], [0, []]);
  });

  test(`${name}: accepts a ClientHello byte by byte`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    for (const byte of realHello) await client.send(Uint8Array.of(byte));
    // The record header of a ServerHello.
    assert.deepEqual([...(await client.take(3))], [22, 3, 3]);
  });

  test(`${name}: refuses a client without a common TLS version`, async () => {
    await using backend = await echoServer();
    using worker = await startWorkerInTest(webService([endpointOf(backend)], terminatingTls()), { transport });
    await using client = await connectClient({ host: worker.host, port: worker.port });
    await client.send(clientHelloRecord({ version: 0x0302, extensions: [serverNameExtension('web.example')] }));
    assert.deepEqual([...(await client.take(7))].slice(-2), [2, 70]);
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'tls-handshake-failed': 1 }));
  });
}

test('refuses clients while the client CA is missing, because no client certificate could be verified', async () => {
  await using backend = await echoServer();
  const terminating = terminatingTls();
  const tls = { secret: 'web', ports: [{ port: PORT, alpn: [] }], clientCaSecret: 'clients' };
  using worker = await startWorkerInTest(
    webService([endpointOf(backend)], { ...terminating, settings: { ...terminating.settings, tls } }),
  );
  await using client = await connectClient({ host: worker.host, port: worker.port });
  await client.send(realHello);
  // The alert `internal_error`.
  assert.deepEqual([...(await client.take(7))].slice(-2), [2, 80]);
  await client.end();
  await eventually(() => assert.deepEqual(worker.outcomes(), { 'no-certificate': 1 }));
  assert.equal(backend.acceptedConnections, 0);
});

/** The ClientHello of Node's TLS client. */
const realHello = await captureNodeClientHello(TRUSTING_CLIENT);
