import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import type { ServiceView } from '@weir/model';
import { eventually } from '@weir/testkit';
import { startDemoClients } from '../src/demo/demo-clients.ts';

/** Loopback address that differs from those of other tests and of a demo that a person runs on this machine. */
const host = `127.${150 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 256}.9`;

test('players connect again after an operator has suspended and resumed the game', async () => {
  const sockets = new Set<Socket>();
  const players = (): Socket[] => [...sockets].filter(({ localPort }) => localPort === 17_777);
  const listen = async (port: number): Promise<Server> => {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      socket.pipe(socket);
    });
    server.listen({ host, port });
    await once(server, 'listening');
    return server;
  };
  await using _shop = await listen(18_080);
  await using _uploader = await listen(19_000);
  await using _game = await listen(17_777);
  const services = ['shop', 'game', 'uploader'].map((namespace) => ({ namespace, addresses: [host] }));
  const clients = startDemoClients(services as unknown as ServiceView[]);
  try {
    await eventually(() => assert.equal(players().length, 6));
    for (const socket of players()) socket.resetAndDestroy();
    await eventually(() => assert.equal(clients.game.count().connections, 12));
    const { failures, receivedBytes } = clients.game.count();
    assert.ok(failures.count > 0);
    await eventually(() => assert.ok(clients.game.count().receivedBytes > receivedBytes));
    assert.deepEqual(clients.game.count().failures, failures, 'the failures of the reset do not count again');
  } finally {
    for (const socket of sockets) socket.destroy();
    await clients.stop();
    for (const socket of sockets) socket.destroy();
  }
});
