// Whoever speaks to the lock of a node: any process of this host can.
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

test('one that claims to listen and does not is refused, and nothing is closed', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  using stranger = await connectToLock(fleet);
  stranger.say({ kind: 'ready', applied: proxy.view().applied });
  assert.deepEqual(await stranger.hears('join'), { kind: 'join', open: [`TCP/${fleet.addressOf()}/${PORT}`] });
  stranger.say({ kind: 'listening' });
  assert.match(JSON.stringify(await stranger.hears('refused')), /no other process of this user listens on/);
  await goesOn(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

test('nor is one believed that listens by TCP only where the holder has UDP, too', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, { ...webService([endpointOf(backend)]), protocol: 'UDP' });
  using stranger = await connectToLock(fleet);
  stranger.say({ kind: 'ready', applied: proxy.view().applied });
  assert.deepEqual(await stranger.hears('join'), { kind: 'join', open: [`UDP/${fleet.addressOf()}/${PORT}`] });
  stranger.say({ kind: 'listening' });
  assert.match(JSON.stringify(await stranger.hears('refused')), /no other process of this user listens on UDP/);
});

test('one that goes away midway leaves the holder serving, and the holder opens and closes listeners again', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  const stranger = await connectToLock(fleet);
  stranger.say({ kind: 'ready', applied: proxy.view().applied });
  await stranger.hears('join');
  stranger[Symbol.dispose]();
  await goesOn(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

test('one without our table is told to wait, and one that says what nobody understands is cut off', async () => {
  await using fleet = await startFleet();
  await using backend = await echoServer();
  const proxy = await startServing(fleet, webService([endpointOf(backend)]));
  using stranger = await connectToLock(fleet);
  stranger.say({ kind: 'ready', applied: { epoch: 1, revision: 1, id: 'another' } });
  await stranger.hears('wait');
  for (const nonsense of [{ kind: 'ready' }, { kind: 'yours' }, [], 'x'.repeat(10_000)]) {
    using fool = await connectToLock(fleet);
    fool.say(nonsense);
    await fool.ended;
  }
  await goesOn(fleet, proxy, webService([endpointOf(backend)], { name: 'new', port: 9_090 }));
});

async function goesOn(fleet: Fleet, proxy: RunningProxy, another: Parameters<Fleet['serve']>[0]): Promise<void> {
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
  say(what: unknown): void;
  hears(kind: TakeoverReply['kind']): Promise<TakeoverReply>;
  readonly ended: Promise<unknown>;
}

async function connectToLock(fleet: Fleet): Promise<UntrustedSuccessor> {
  const socket: Socket = connect({ path: `\0weir/${fleet.name}/a` });
  const ended = new Promise((resolve) => socket.on('close', resolve));
  const heard: TakeoverReply[] = [];
  let wake = (): void => undefined;
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) heard.push(parseTakeoverReply(line) ?? assert.fail(line));
    wake();
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return {
    ended,
    say: (what) => void socket.write(`${JSON.stringify(what)}\n`),
    async hears(kind) {
      for (;;) {
        const found = heard.find((reply) => reply.kind === kind);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
