// The access log of TCP connections and UDP flows in one worker, with real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { type ServiceEntry, serviceId } from '@weir/model';
import { connectClient, echoServer, eventually, freePort } from '@weir/testkit';
import { NOTHING_RELAYED } from '../../src/accept/refuse.ts';
import { AccessLog } from '../../src/access-log/access-log.ts';
import type { EndedConnection } from '../../src/access-log/connection-line.ts';
import { createLogFlag, LogBuffer } from '../../src/access-log/log-buffer.ts';
import {
  ACCESS_LOG_DROPPED,
  ACTIVE,
  counterRow,
  createCounterBlock,
  RECEIVED,
  SENT,
} from '../../src/metering/counters.ts';
import { TRUSTING_CLIENT, terminatingTls } from '../fixtures/certificates.ts';
import { connectAndAwaitEnd } from '../fixtures/connection-ending.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { ALL_REQUESTS, type LogLine } from '../fixtures/logged-requests.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { type TestService, tableFor, uidOf } from '../fixtures/tables.ts';
import { tlsClient } from '../fixtures/tls-echo.ts';
import { TLS_TRANSPORTS, UDP_TRANSPORTS } from '../fixtures/transports.ts';
import { udpClient, udpEcho } from '../fixtures/udp-sockets.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';
import { clientHelloRecord, serverNameExtension } from '../protocol/client-hello-bytes.ts';

const LOGGED = { settings: { accessLog: ALL_REQUESTS } };

/** Returns all lines of the worker. */
function linesOf(worker: WorkerInTest): LogLine[] {
  worker.apply({ kind: 'mark', sequence: 1 });
  return worker.answers
    .flatMap((message) => (message.kind === 'access-log' ? [Buffer.from(message.chunk.bytes).toString('utf8')] : []))
    .flatMap((text) => text.split('\n').slice(0, -1))
    .map((line) => JSON.parse(line) as LogLine);
}

const linesIn = (bytes: Uint8Array): number => bytes.filter((byte) => byte === 0x0a).length;

const ended = (worker: WorkerInTest): Promise<void> =>
  eventually(() => {
    assert.equal(worker.row[ACTIVE], 0);
    assert.ok(Object.keys(worker.outcomes()).length > 0);
  });

for (const { name, transport } of TLS_TRANSPORTS) {
  const start = (service: TestService, options = {}): Promise<WorkerInTest> =>
    startWorkerInTest(service, { transport, ...options });

  test(`${name}: writes one line with all members when a TCP connection ends`, async () => {
    await using backend = await echoServer();
    using worker = await start(webService([endpointOf(backend)], LOGGED));
    await using client = await connectClient(worker);
    const { localPort } = client;
    await client.send('hello');
    await client.take(5);
    await client.end();
    await client.ended;
    await ended(worker);
    const [line = {}, ...others] = linesOf(worker);
    const { time, durationMs, ...rest } = line;
    assert.deepEqual(others, []);
    assert.equal(new Date(String(time)).toISOString(), time);
    assert.ok(Number(durationMs) >= 0);
    assert.deepEqual(rest, {
      level: 'info',
      name: 'access',
      node: 'a',
      namespace: 'shop',
      service: 'web',
      client: '127.0.0.1',
      clientPort: localPort,
      protocol: 'TCP',
      listener: `${worker.host}:${PORT}`,
      outcome: 'completed',
      reason: null,
      receivedBytes: 5,
      sentBytes: 5,
      endpoint: `127.0.0.1:${backend.port}`,
      attempts: 1,
      tls: null,
    });
  });

  test(`${name}: logs the bytes that are counted, and how each connection ended`, async () => {
    await using backend = await echoServer();
    using worker = await start(
      webService([endpointOf(backend)], { settings: { ...LOGGED.settings, idleTimeoutMs: 5_000 } }),
    );
    await using resetting = await connectClient(worker);
    await resetting.send('x'.repeat(100_000));
    await resetting.take(100_000);
    resetting.reset();
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
    await using idle = await connectClient(worker);
    await idle.send('abc');
    await idle.take(3);
    worker.tick(7);
    await idle.ended;
    await ended(worker);
    const lines = linesOf(worker);
    assert.deepEqual(
      lines.map(({ outcome, reason, receivedBytes }) => [outcome, reason, receivedBytes]),
      [
        ['reset-by-client', null, 100_000],
        ['idle-timeout', null, 3],
      ],
    );
    const sum = (member: string): number => lines.reduce((total, line) => total + Number(line[member]), 0);
    assert.deepEqual([sum('receivedBytes'), sum('sentBytes')], [worker.row[RECEIVED], worker.row[SENT]]);
  });

  test(`${name}: logs version and server name of terminated TLS, and a client that fails the handshake`, async () => {
    await using backend = await echoServer();
    using worker = await start(webService([endpointOf(backend)], terminatingTls(LOGGED)));
    await using client = await connectClient({ ...worker, tls: { ...TRUSTING_CLIENT, maxVersion: 'TLSv1.2' } });
    await client.send('hello');
    await client.take(5);
    await client.end();
    await client.ended;
    await using leaving = await connectClient(worker);
    await leaving.send(clientHelloRecord({ extensions: [serverNameExtension('web.example')] }));
    await leaving.end();
    await leaving.ended;
    await ended(worker);
    const [first, second] = linesOf(worker);
    const { servername } = TRUSTING_CLIENT;
    assert.deepEqual([first?.outcome, first?.tls], ['completed', { version: 'TLSv1.2', serverName: servername }]);
    assert.deepEqual([first?.receivedBytes, first?.sentBytes], [5, 5]);
    assert.equal(second?.reason, 'tls-handshake-failed');
    assert.deepEqual(second?.tls, { version: null, serverName: servername });
  });
}

test('logs a client that is refused, with the reason', async () => {
  await using backend = await echoServer();
  const limits = { connections: null, connectionsPerClient: 0, inBitsPerSecond: null, outBitsPerSecond: null };
  const cases = [
    ['source-range', { sourceRanges: ['192.0.2.0/24'] }, [endpointOf(backend)]],
    ['no-endpoints', {}, []],
    ['connect-failed', {}, [{ address: '127.0.0.1', port: await freePort() }]],
    ['client-limit', { limits }, [endpointOf(backend)]],
  ] as const;
  for (const [reason, settings, endpoints] of cases) {
    using worker = await startWorkerInTest(webService(endpoints, { settings: { ...settings, ...LOGGED.settings } }));
    await connectAndAwaitEnd(worker);
    await eventually(() => assert.deepEqual(worker.outcomes(), { [reason]: 1 }));
    const [line, ...others] = linesOf(worker);
    assert.deepEqual(others, []);
    assert.deepEqual([line?.outcome, line?.reason, line?.client], [reason, reason, '127.0.0.1']);
    assert.equal(line?.attempts, reason === 'connect-failed' ? 1 : 0);
  }
});

test('logs the server name of TLS that is passed through, and the bytes of an alert', async () => {
  await using backend = await echoServer();
  const settings = { ...LOGGED.settings, tlsPassthrough: true, hosts: ['shop.example'] };
  using worker = await startWorkerInTest(webService([endpointOf(backend)], { settings }));
  await once(tlsClient(worker, 'other.example'), 'error');
  await ended(worker);
  const [line] = linesOf(worker);
  assert.equal(line?.reason, 'unknown-host');
  assert.deepEqual(line?.tls, { version: null, serverName: 'other.example' });
  assert.deepEqual([line?.receivedBytes, line?.sentBytes], [worker.row[RECEIVED], 7]);
});

test('logs at most 50 refused connections of a Service per second, and counts the others as dropped', () => {
  const table = tableFor({ a: '127.0.0.1' }, [webService([], LOGGED)]);
  const entry = table.entries.get(serviceId(uidOf({ name: 'web' }))) as ServiceEntry;
  const counters = counterRow([createCounterBlock()], 1);
  const lines: number[] = [];
  const buffer = new LogBuffer({ flag: createLogFlag(), send: ({ bytes }) => lines.push(linesIn(bytes)) });
  let now = 0;
  const log = new AccessLog({ node: 'a', buffer, now: () => now });
  const address = { address: '127.0.0.1', port: 80 };
  const refused = { ...NOTHING_RELAYED, protocol: 'TCP', client: address, destination: address, outcome: 'rate-limit' };
  for (now of [500, 999, 1_000])
    for (let count = 0; count < 30; count += 1)
      log.refuseConnection(refused as EndedConnection, { entry, counters, sessions: new Set() });
  log.flush();
  assert.deepEqual([lines, counters[ACCESS_LOG_DROPPED]], [[80], 10]);
});

test('logs no connection that began without the annotation', async () => {
  await using backend = await echoServer();
  using worker = await startWorkerInTest(webService([endpointOf(backend)]));
  await using open = await connectClient(worker);
  worker.serve(webService([endpointOf(backend)], LOGGED));
  await open.end();
  await open.ended;
  await ended(worker);
  assert.deepEqual(linesOf(worker), []);
});

for (const [name, udpTransport] of Object.entries(UDP_TRANSPORTS)) {
  test(`${name}: writes one line when a UDP flow ends`, async () => {
    await using echo = await udpEcho('re: ');
    const service = { name: 'voice', port: PORT, protocol: 'UDP', endpoints: [echo.endpoint], ...LOGGED } as const;
    using worker = await startWorkerInTest(service, { udpTransport });
    await using client = await udpClient(worker);
    await client.ask('hello');
    worker.apply({ kind: 'terminate', outcome: 'drained' });
    await ended(worker);
    const [line = {}] = linesOf(worker);
    const { time, durationMs, clientPort, ...rest } = line;
    assert.ok(Number(clientPort) > 0 && Number(durationMs) >= 0 && typeof time === 'string');
    assert.deepEqual(rest, {
      level: 'info',
      name: 'access',
      node: 'a',
      namespace: 'shop',
      service: 'voice',
      client: '127.0.0.1',
      protocol: 'UDP',
      listener: `${worker.host}:${PORT}`,
      outcome: 'drained',
      reason: null,
      receivedBytes: 5,
      sentBytes: 9,
      endpoint: `127.0.0.1:${echo.endpoint.port}`,
      attempts: 1,
      tls: null,
    });
  });

  test(`${name}: logs a refused datagram with its reason`, async () => {
    const settings = { ...LOGGED.settings, sourceRanges: ['192.0.2.0/24'] };
    const service = { name: 'voice', port: PORT, protocol: 'UDP', endpoints: [], settings } as const;
    using worker = await startWorkerInTest(service, { udpTransport });
    await using client = await udpClient(worker);
    await client.send('hello');
    await eventually(() => assert.deepEqual(worker.outcomes(), { 'source-range': 1 }));
    const [line] = linesOf(worker);
    assert.deepEqual([line?.protocol, line?.reason, line?.client], ['UDP', 'source-range', '127.0.0.1']);
  });
}
