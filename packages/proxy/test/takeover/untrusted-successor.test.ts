// Tests a process that is no proxy and connects to the lock of a node. Any process of the host can do this, so the
// serving proxy must not trust it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connectClient, echoServer, eventually } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { parseTakeoverReply, type TakeoverReply } from '../../src/takeover/messages.ts';
import { type Fleet, startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, startServing, webService } from '../fixtures/services.ts';

test('refuses a successor that claims to listen but does not, and keeps serving', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  using successor = await connectToLock(fleet);
  successor.send({ kind: 'ready', applied: proxy.view().applied });
  assert.deepEqual(await successor.receive('join'), { kind: 'join', open: [`TCP/${fleet.addressOf()}/${PORT}`] });
  successor.send({ kind: 'listening' });
  assert.match(JSON.stringify(await successor.receive('refused')), /no other process of the proxy's user listens on/);
  await assertServing(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

test('refuses a successor that does not listen on a UDP port of the predecessor', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, { ...webService([endpointOf(backend)]), protocol: 'UDP' });
  using successor = await connectToLock(fleet);
  successor.send({ kind: 'ready', applied: proxy.view().applied });
  assert.deepEqual(await successor.receive('join'), { kind: 'join', open: [`UDP/${fleet.addressOf()}/${PORT}`] });
  successor.send({ kind: 'listening' });
  assert.match(
    JSON.stringify(await successor.receive('refused')),
    /no other process of the proxy's user listens on UDP/,
  );
});

test('keeps serving and applies table changes after a successor disconnects during the takeover', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  const successor = await connectToLock(fleet);
  successor.send({ kind: 'ready', applied: proxy.view().applied });
  await successor.receive('join');
  successor[Symbol.dispose]();
  await assertServing(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

test('lets a successor with another table wait, and disconnects one that sends an invalid message', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  using successor = await connectToLock(fleet);
  successor.send({ kind: 'ready', applied: { epoch: 1, revision: 1, id: 'another' } });
  await successor.receive('wait');
  for (const nonsense of [{ kind: 'ready' }, { kind: 'yours' }, [], 'x'.repeat(10_000)]) {
    using sender = await connectToLock(fleet);
    sender.send(nonsense);
    await sender.ended;
  }
  await assertServing(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

test('has a bound on the processes that wait for the lock, and on what they send', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  using stack = new DisposableStack();
  const waiting: UntrustedSuccessor[] = [];
  while (waiting.length < 16) waiting.push(stack.use(await connectToLock(fleet)));
  using oneMore = await connectToLock(fleet);
  await oneMore.ended;
  waiting[0]?.send('x'.repeat(10_000));
  await waiting[0]?.ended;
  await assertServing(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

async function assertServing(fleet: Fleet, proxy: RunningProxy, another: Parameters<Fleet['serve']>[0]): Promise<void> {
  await waitForListenerReport(proxy, { bound: true, listening: true, error: null });
  await fleet.serve({ ...another, name: 'web', port: PORT }, another);
  for (const port of [PORT, another.port]) {
    await using client = await connected(fleet, port);
    await client.send('x');
    await client.take(1);
  }
}

function connected(fleet: Fleet, port: number): ReturnType<typeof connectClient> {
  return eventually(() => connectClient({ host: fleet.addressOf(), port }));
}

interface UntrustedSuccessor extends Disposable {
  send(message: unknown): void;
  receive(kind: TakeoverReply['kind']): Promise<TakeoverReply>;
  readonly ended: Promise<unknown>;
}

async function connectToLock(fleet: Fleet): Promise<UntrustedSuccessor> {
  const socket: Socket = connect({ path: `\0weir/${fleet.name}/a` });
  const ended = new Promise((resolve) => socket.on('close', resolve));
  const replies: TakeoverReply[] = [];
  let wake = (): void => undefined;
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) replies.push(parseTakeoverReply(line) ?? assert.fail(line));
    wake();
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return {
    ended,
    send: (message) => void socket.write(`${JSON.stringify(message)}\n`),
    async receive(kind) {
      for (;;) {
        const found = replies.find((reply) => reply.kind === kind);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
