// The event loop of a thread's sockets, beside Node's own event loop.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { connectClient, eventually } from '@weir/testkit';
import { closeAbandonedDescriptors, createDescriptorMemory } from '../../src/transport/choose-transport.ts';
import { EventLoop } from '../../src/transport/event-loop.ts';
import { checkSyscalls } from '../../src/transport/syscalls/check-syscalls.ts';
import { MAX_EVENTS } from '../../src/transport/syscalls/event-poll.ts';
import { AF_INET, EPOLLET, EPOLLIN, SOCK_STREAM } from '../../src/transport/syscalls/layouts.ts';
import {
  bindSocket,
  closeDescriptor,
  connectSocket,
  listenSocket,
  localPort,
  openSocket,
} from '../../src/transport/syscalls/sockets.ts';
import { udpClient } from '../fixtures/udp-sockets.ts';

const HOST = '127.0.0.1';

function openListener(): { descriptor: number; port: number } {
  const descriptor = openSocket(AF_INET, SOCK_STREAM);
  assert.equal(bindSocket(descriptor, HOST, 0), 0);
  assert.equal(listenSocket(descriptor, 16), 0);
  return { descriptor, port: localPort(descriptor) };
}

test('the self-test passes on this machine', () => checkSyscalls());

test('an event of a closed descriptor never reaches the socket that reuses its number', async () => {
  const loop = new EventLoop();
  const [first, second] = [openListener(), openListener()];
  const reached: string[] = [];
  let reused: number | undefined;
  const handlerOf = (own: string, other: { descriptor: number }, otherName: string) => ({
    onEvents() {
      reached.push(own);
      if (reused !== undefined) return;
      loop.unregister(other.descriptor);
      closeDescriptor(other.descriptor);
      reused = openListener().descriptor;
      assert.equal(reused, other.descriptor, `the number of ${otherName} is reused`);
      loop.register(reused, EPOLLIN, { onEvents: () => reached.push('reused') });
    },
  });
  loop.register(first.descriptor, EPOLLIN, handlerOf('first', second, 'second'));
  loop.register(second.descriptor, EPOLLIN, handlerOf('second', first, 'first'));
  // Both connects end before the loop waits for the first time, so both events are in one batch.
  const clients = [first, second].map(({ port }) => {
    const client = openSocket(AF_INET, SOCK_STREAM);
    connectSocket(client, HOST, port);
    return client;
  });
  await eventually(() => assert.notEqual(reused, undefined));
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(!reached.includes('reused'), reached.join());
  for (const descriptor of [first.descriptor, second.descriptor, ...clients]) {
    loop.unregister(descriptor);
    closeDescriptor(descriptor);
  }
});

test('a flush comes behind the events of the turn in which something has asked for it', async () => {
  const loop = new EventLoop();
  const { descriptor, port } = openListener();
  const order: string[] = [];
  let accepts = 0;
  loop.register(descriptor, EPOLLIN | EPOLLET, {
    onEvents: () => {
      accepts += 1;
      order.push(`event in turn ${loop.turn}`);
    },
  });
  await new Promise((resolve) => setImmediate(resolve));
  const client = openSocket(AF_INET, SOCK_STREAM);
  connectSocket(client, HOST, port);
  // The event is ready when the turn begins.
  loop.resumeLater({
    resume: () => loop.flushLater({ flush: () => order.push(`flush in turn ${loop.turn}`) }),
  });
  await eventually(() => assert.equal(accepts, 1));
  await eventually(() => assert.equal(order.length, 2));
  assert.match(order.join(), /^event in turn (\d+),flush in turn \1$/);
  loop.unregister(descriptor);
  for (const each of [descriptor, client]) closeDescriptor(each);
});

test('one turn handles more events than one wait receives, but only for a short time', async () => {
  for (const [msPerEvent, expected] of [
    [0, MAX_EVENTS * 3 + 1],
    [1, MAX_EVENTS * 2],
  ] as const) {
    let now = 0;
    const loop = new EventLoop(() => now);
    const turns: number[] = [];
    // A TCP socket that is not connected has an event (EPOLLHUP) at once.
    const descriptors = Array.from({ length: MAX_EVENTS * 3 + 1 }, () => openSocket(AF_INET, SOCK_STREAM));
    const onEvents = (): void => {
      turns.push(loop.turn);
      now += msPerEvent;
    };
    try {
      for (const descriptor of descriptors) loop.register(descriptor, EPOLLIN | EPOLLET, { onEvents });
      await eventually(() => assert.equal(turns.length, descriptors.length));
      const inFirstTurn = turns.filter((turn) => turn === turns[0]).length;
      // Each wait may also receive an event of libuv, which takes the place of a socket's event.
      assert.ok(inFirstTurn <= expected && inFirstTurn >= expected - 2, `${inFirstTurn} events`);
    } finally {
      // A registered socket would keep the process alive.
      for (const descriptor of descriptors) {
        loop.unregister(descriptor);
        closeDescriptor(descriptor);
      }
    }
  }
});

test('reads the clock once for the events of one wait, and again after the wait', async () => {
  let readings = 0;
  const loop = new EventLoop(() => ++readings);
  const seen: { readonly turn: number; readonly now: number }[] = [];
  const record = (): void => {
    seen.push({ turn: loop.turn, now: loop.nowMs }, { turn: loop.turn, now: loop.nowMs });
  };
  const descriptors = [1, 2].map(() => openSocket(AF_INET, SOCK_STREAM));
  for (const descriptor of descriptors) loop.register(descriptor, EPOLLIN | EPOLLET, { onEvents: record });
  loop.resumeLater({ resume: record });
  await eventually(() => assert.equal(seen.length, 6));
  assert.deepEqual(
    seen.map(({ now }) => now),
    [1, 1, 2, 2, 2, 2],
  );
  assert.equal(new Set(seen.map(({ turn }) => turn)).size, 1);
  assert.equal(loop.nowMs, 3, 'no event is being handled');
  for (const descriptor of descriptors) {
    loop.unregister(descriptor);
    closeDescriptor(descriptor);
  }
});

test('the release of a closed descriptor does not end the registration of the socket that reuses its number', async () => {
  const loop = new EventLoop();
  const former = openListener();
  const formerHandler = { onEvents: () => undefined };
  loop.register(former.descriptor, EPOLLIN, { onEvents: () => undefined });
  loop.handOver(former.descriptor, formerHandler);
  closeDescriptor(former.descriptor);
  const { descriptor, port } = openListener();
  assert.equal(descriptor, former.descriptor, 'the number is reused');
  const event = new Promise<void>((resolve) => {
    loop.register(descriptor, EPOLLIN, { onEvents: () => resolve() });
  });
  loop.release(descriptor, formerHandler);
  const client = openSocket(AF_INET, SOCK_STREAM);
  connectSocket(client, HOST, port);
  await event;
  loop.unregister(descriptor);
  closeDescriptor(descriptor);
  closeDescriptor(client);
});

test('timers, promises and messages go on while the loop waits for sockets', async () => {
  const loop = new EventLoop();
  const listener = openListener();
  loop.register(listener.descriptor, EPOLLIN, { onEvents: () => undefined });
  const { port1, port2 } = new MessageChannel();
  const message = new Promise((resolve) => port1.once('message', resolve));
  await delay(20);
  port2.postMessage('hello');
  assert.equal(await message, 'hello');
  port1.close();
  loop.unregister(listener.descriptor);
  closeDescriptor(listener.descriptor);
});

test('a timer that the owner of a closed socket starts ends in time', async () => {
  const loop = new EventLoop();
  const listener = openListener();
  loop.register(listener.descriptor, EPOLLIN, { onEvents: () => undefined });
  // The loop has nothing else to do until this timer.
  const other = setTimeout(() => undefined, 1_000);
  await delay(50);
  const startedAt = performance.now();
  await new Promise((resolve) => {
    loop.closeLater({ emitClose: () => setTimeout(resolve, 1) });
  });
  const elapsedMs = performance.now() - startedAt;
  clearTimeout(other);
  loop.unregister(listener.descriptor);
  closeDescriptor(listener.descriptor);
  assert.ok(elapsedMs < 500, `${elapsedMs} ms`);
});

test('the run in which the last socket is closed begins no further turns', async () => {
  let now = 0;
  // A clock that advances only a little with each reading, so that the time of a run allows thousands of turns.
  const loop = new EventLoop(() => {
    now += 0.0001;
    return now;
  });
  const descriptor = openSocket(AF_INET, SOCK_STREAM);
  let lastTurn = 0;
  loop.register(descriptor, EPOLLIN | EPOLLET, {
    onEvents: () => {
      lastTurn = loop.turn;
      loop.unregister(descriptor);
      closeDescriptor(descriptor);
    },
  });
  await eventually(() => assert.notEqual(lastTurn, 0));
  assert.equal(loop.turn, lastTurn);
});

test('immediates run without a wait for sockets', async () => {
  const loop = new EventLoop();
  const listener = openListener();
  loop.register(listener.descriptor, EPOLLIN, { onEvents: () => undefined });
  const immediates = async (): Promise<string> => {
    for (let count = 0; count < 200; count += 1) await new Promise((resolve) => setImmediate(resolve));
    return 'immediates';
  };
  // The loop would wait for 10 ms before each immediate.
  const first = await Promise.race([immediates(), delay(1_000, 'timer', { ref: false })]);
  loop.unregister(listener.descriptor);
  closeDescriptor(listener.descriptor);
  assert.equal(first, 'immediates');
});

test('the descriptors of a terminated worker are closed, and its clients are reset', async () => {
  const descriptors = createDescriptorMemory();
  const worker = new Worker(new URL('./listening-worker.ts', import.meta.url), { workerData: { descriptors } });
  const [port] = await once(worker, 'message');
  await using client = await connectClient({ host: HOST, port });
  await client.send('x');
  assert.equal((await client.take(1)).toString(), 'x');
  await worker.terminate();
  assert.ok((await closeAbandonedDescriptors(descriptors)) >= 4);
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  await assert.rejects(connectClient({ host: HOST, port }), /ECONNREFUSED/);
  await using datagrams = await udpClient({ host: HOST, port });
  await datagrams.send('x');
  await assert.rejects(datagrams.take(), { code: 'ECONNREFUSED' });
  assert.equal(await closeAbandonedDescriptors(descriptors), 0);
});
