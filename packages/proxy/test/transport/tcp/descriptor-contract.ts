// Tests that a transport leaks no descriptor, never writes to a closed descriptor, and reports when descriptors run
// out.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectClient, discardServer, echoServer, eventually, spawnProcess, type TestClient } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';
import type { TransportName } from './few-descriptors-process.ts';
import { StreamRecorder } from './stream-recorder.ts';
import { startTestListener, type TestListener } from './test-listener.ts';

const FEW = 64;
const MANY = 10_000;
const AT_ONCE = 50;

const program = fileURLToPath(new URL('./few-descriptors-process.ts', import.meta.url));

export function descriptorContract(name: TransportName, transport: TcpTransport): void {
  for (const [size, bytes] of [
    ['small', 10],
    ['large', 100_000],
  ] as const) {
    test(`a ${size} write to a closed stream never reaches the connection that reuses its descriptor`, async () => {
      using listener = await startTestListener(transport);
      const closed = await pair(listener);
      closed.stream.reset();
      await closed.events.until(() => closed.events.closed !== undefined);
      await closed.client.close();
      const successors = [await pair(listener), await pair(listener), await pair(listener)];
      closed.stream.write(Buffer.alloc(bytes, 'poison'));
      closed.stream.shutdown();
      for (const { stream, client } of successors) {
        stream.write(Buffer.from('own'));
        assert.equal((await client.take(3)).toString(), 'own');
        stream.shutdown();
        assert.deepEqual(await client.ended, { kind: 'end' });
        assert.equal(client.received, 3);
        await client.close();
      }
    });
  }

  test('10,000 closed connections end no open descriptor', async () => {
    using listener = await startTestListener(transport);
    await using sink = await discardServer();
    const before = descriptors();
    for (let count = 0; count < MANY; count += AT_ONCE) {
      const events = Array.from({ length: AT_ONCE }, () => new StreamRecorder());
      for (const [index, recorder] of events.entries()) {
        const to =
          index % 2 === 0 ? { address: listener.host, port: listener.port } : { address: sink.host, port: sink.port };
        const stream = transport.connect(to, recorder);
        if (index % 5 === 0) stream.reset();
        else void recorder.until(() => recorder.isConnected).then(() => end(stream, index));
      }
      await Promise.all(events.map((recorder) => recorder.until(() => recorder.closed !== undefined)));
    }
    listener.resetAll();
    await eventually(() => assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`));
  });

  test('without descriptors reports refused connections, fails connects, and recovers', async () => {
    await using backend = await echoServer();
    const node = [process.execPath, '--conditions=source', program, name, backend.host, String(backend.port)];
    await using child = await spawnProcess({
      command: 'sh',
      args: ['-c', `ulimit -n ${FEW}; exec "$@"`, 'sh', ...node],
      readyWhen: /listening \d+/,
      mayExit: true,
    });
    const [, host = '', port = ''] = /listening (\S+) (\d+)/.exec(child.output()) ?? [];
    const attempts = Array.from({ length: FEW }, () => connectClient({ host, port: Number(port) }));
    // Some attempts may fail, because a connection may be reset before the client sees it as connected.
    const clients = (await Promise.allSettled(attempts)).filter((attempt) => attempt.status === 'fulfilled');
    await child.waitForOutput(/accept EMFILE.*connect EMFILE.*freed/s);
    await Promise.all(clients.map(({ value }) => value.close()));
    // Connections that are still in the accept queue are accepted first, and may use up the descriptors again.
    await eventually(async () => {
      await using client = await connectClient({ host, port: Number(port) });
      assert.equal((await client.take(5)).toString(), 'again');
    });
  });
}

function end(stream: { shutdown(): void; reset(): void }, index: number): void {
  if (index % 2 === 0) stream.reset();
  else stream.shutdown();
}

async function pair(
  listener: TestListener,
): Promise<Awaited<ReturnType<TestListener['next']>> & { client: TestClient }> {
  const arrival = listener.next();
  const client = await connectClient({ host: listener.host, port: listener.port });
  return { ...(await arrival), client };
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}
