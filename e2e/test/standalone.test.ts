import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, type TestClient, type TestServer } from '@weir/testkit';
import { startStandalone } from '../src/standalone.ts';

interface Usage {
  readonly items: readonly { receivedBytes: number; sentBytes: number; connections: number }[];
}

test('the ledger counts ten million bytes each way over a thousand connections exactly', async () => {
  await using echo = await echoServer();
  await using weir = await startStandalone([echo.port]);
  const total = { sent: 0, received: 0 };
  const exchange = async (seed: number): Promise<void> => {
    await using client = await connectClient({ port: weir.port, expectPattern: seed, timeoutMs: 60_000 });
    await client.sendPattern({ bytes: 10_000, seed });
    await client.end();
    assert.deepEqual(await client.ended, { kind: 'end' });
    total.sent += client.sent;
    total.received += client.received;
  };
  await Promise.all(Array.from({ length: 1_000 }, (_, seed) => exchange(seed)));
  assert.deepEqual(total, { sent: 10_000_000, received: 10_000_000 });
  await eventually(
    async () => {
      const { items } = await weir.weir<Usage>('usage', 'shop');
      const { receivedBytes, sentBytes, connections } = items[0] ?? {};
      assert.deepEqual([receivedBytes, sentBytes, connections], [10_000_000, 10_000_000, 1_000]);
    },
    { timeoutMs: 15_000, intervalMs: 100 },
  );
});

test('an edited file changes the routing and keeps open connections', async (t) => {
  await using first = await greeter('first');
  await using second = await greeter('second');
  await using weir = await startStandalone([first.port]);
  await using open = await connectClient({ port: weir.port });
  assert.equal((await open.take(/\n/)).toString(), 'first\n');

  const edited = performance.now();
  weir.writeEndpoints([second.port]);
  await eventually(async () => assert.equal(await greetingAt(weir.port), 'second\n'), {
    timeoutMs: 5_000,
    intervalMs: 1,
  });
  t.diagnostic(`${Math.round(performance.now() - edited)} ms from the edit to the first response of the new endpoint`);

  await assertStillEchoes(open);
  weir.writeEndpoints([]);
  await eventually(() => assert.rejects(connectClient({ port: weir.port }), { code: 'ECONNREFUSED' }), {
    timeoutMs: 5_000,
  });
  await assertStillEchoes(open);
});

async function assertStillEchoes(client: TestClient): Promise<void> {
  await client.send('still there?\n');
  assert.equal((await client.take(/\n/)).toString(), 'still there?\n');
}

async function greetingAt(port: number): Promise<string> {
  await using client = await connectClient({ port });
  return (await client.take(/\n/)).toString();
}

/** Starts a server that sends its name on one line and then echoes. */
async function greeter(name: string): Promise<Pick<TestServer, 'port'> & AsyncDisposable> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.write(`${name}\n`);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return { port: address.port, [Symbol.asyncDispose]: async () => void server.close() };
}
