import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  connectClient,
  discardServer,
  echoServer,
  freePort,
  httpBackend,
  patternServer,
  startTcpRelay,
  type TestClient,
} from '../src/index.ts';

const million = 1_000_000;

describe('client and server count the same bytes', () => {
  test('when a server echoes a pattern', async () => {
    await using server = await echoServer();
    await using client = await connectClient({ port: server.port, expectPattern: 7 });
    await client.sendPattern({ bytes: million, seed: 7, chunk: 10_007 });
    await client.end();
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.deepEqual([client.sent, client.received], [million, million]);
    assert.deepEqual([server.received, server.sent], [million, million]);
  });

  test('when a server discards an upload', async () => {
    await using server = await discardServer();
    await using client = await connectClient({ port: server.port });
    await client.sendPattern({ bytes: million });
    await client.end();
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.deepEqual([client.received, server.received, server.sent], [0, million, 0]);
  });

  test('when a client pauses during a download', async () => {
    await using server = await patternServer({ bytes: million, seed: 3 });
    await using client = await connectClient({ port: server.port, expectPattern: 3 });
    client.pause();
    await client.send('x');
    client.resume();
    assert.deepEqual(await client.ended, { kind: 'end' });
    assert.deepEqual([client.received, server.sent, server.received], [million, million, 1]);
  });
});

test('waitForBytes rejects with the offset of the first byte that does not match the pattern', async () => {
  await using server = await patternServer({ bytes: 1_000, seed: 3 });
  await using client = await connectClient({ port: server.port, expectPattern: 4 });
  await assert.rejects(client.waitForBytes(1_000), /byte 0 does not match pattern 4/);
});

test('a server counts a reset by its client', async () => {
  await using server = await echoServer();
  await using client = await connectClient({ port: server.port });
  await client.send('hello');
  assert.equal(String(await client.take(5)), 'hello');
  const idle = server.waitUntilIdle();
  client.reset();
  await idle;
  assert.equal(server.openConnections, 0);
  assert.equal(server.resetConnections, 1);
});

test('a closed server has ended its connections and refuses new ones', async () => {
  const server = await echoServer();
  await using client = await connectClient({ port: server.port });
  await client.send('x');
  await client.take(1);
  await server.close();
  await client.ended;
  await assert.rejects(connectClient({ port: server.port }), /ECONNREFUSED/);
});

test('a client connects from the requested local address', async () => {
  await using server = await echoServer({ host: '127.0.0.1' });
  await using client = await connectClient({ port: server.port, localAddress: '127.0.0.5' });
  assert.equal(client.localAddress, '127.0.0.5');
});

test('take leaves later bytes in the buffer', async () => {
  await using server = await echoServer();
  await using client = await connectClient({ port: server.port });
  await client.send('head\r\n\r\nbody');
  assert.equal(String(await client.take(/\r\n\r\n/)), 'head\r\n\r\n');
  assert.equal(String(await client.take(4)), 'body');
});

test('an HTTP backend answers with its name and counts requests', async () => {
  await using backend = await httpBackend({ name: 'web-1' });
  const response = await fetch(`http://127.0.0.1:${backend.port}/`);
  assert.equal(await response.text(), 'web-1\n');
  assert.equal(backend.requests, 1);
});

test('a free port refuses connections', async () => {
  await assert.rejects(connectClient({ port: await freePort() }), /ECONNREFUSED/);
});

test('a TCP relay relays, resets connections when it is cut, refuses new connections, and relays again', async () => {
  await using server = await echoServer();
  await using relay = await startTcpRelay(server.port);
  const echo = async (client: TestClient): Promise<string> => {
    await client.send(Buffer.from('hello'));
    return (await client.take(5)).toString();
  };
  await using first = await connectClient({ port: relay.port });
  assert.equal(await echo(first), 'hello');
  relay.cut();
  assert.deepEqual(await first.ended, { kind: 'error', code: 'ECONNRESET' });
  await assert.rejects(connectClient({ port: relay.port }), { code: 'ECONNREFUSED' });
  await relay.restore();
  await using second = await connectClient({ port: relay.port });
  assert.equal(await echo(second), 'hello');
});
