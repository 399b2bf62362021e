// Tests Services of several tenants on one port of one address, routed by the server name of the ClientHello.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { connectClient, eventually } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { type Fleet, startFleet, waitForTable } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { outcomesFor } from '../fixtures/services.ts';
import type { TestService } from '../fixtures/tables.ts';
import { type TlsEcho, tlsClient, tlsEcho } from '../fixtures/tls-echo.ts';
import { clientHelloRecord, serverNameExtension } from '../protocol/client-hello-bytes.ts';

const sharing = (name: string, backend: TlsEcho, hosts: readonly string[]): TestService => ({
  name,
  namespace: name,
  port: PORT,
  endpoints: [backend.endpoint],
  shared: true,
  settings: { tlsPassthrough: true, hosts },
});

interface Shared extends AsyncDisposable {
  readonly fleet: Fleet;
  readonly proxy: RunningProxy;
  readonly shopEcho: TlsEcho;
  readonly gameEcho: TlsEcho;
  readonly shop: TestService;
  readonly game: TestService;
  /** Connects a TLS client that sends this server name. */
  ask(name: string): TLSSocket;
}

/**
 * Starts a proxy with one port for two tenants. Tenant shop has `*.shop.example`; tenant game has `game.shop.example`
 * and `game.example`.
 */
async function shared(): Promise<Shared> {
  const stack = new AsyncDisposableStack();
  const fleet = stack.use(await startFleet());
  const [shopEcho, gameEcho] = [stack.use(await tlsEcho()), stack.use(await tlsEcho())];
  const shop = sharing('shop', shopEcho, ['*.shop.example']);
  const game = sharing('game', gameEcho, ['game.shop.example', 'game.example']);
  await fleet.serve(shop, game);
  const proxy = await fleet.proxy({ admin: { host: '127.0.0.1', port: 0 } });
  await proxy.ready;
  const clients: TLSSocket[] = [];
  stack.defer(() => {
    for (const client of clients) client.destroy();
  });
  return {
    fleet,
    proxy,
    shopEcho,
    gameEcho,
    shop,
    game,
    ask(name) {
      const client = tlsClient({ host: fleet.addressOf(), port: PORT }, name);
      clients.push(client);
      return client;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function opened(client: TLSSocket): Promise<TLSSocket> {
  await once(client, 'secureConnect');
  await echoes(client);
  return client;
}

async function echoes(client: TLSSocket): Promise<void> {
  client.write('hello');
  const [echoed] = (await once(client, 'data')) as [Buffer];
  assert.equal(echoed.toString(), 'hello');
}

/** Waits for the end of the handshake. Returns `secureConnect`, or the error code of a failed handshake. */
function outcomeOf(client: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    client.once('secureConnect', () => resolve('secureConnect'));
    client.once('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
  });
}

async function refusedWith(client: TLSSocket, code: RegExp): Promise<void> {
  assert.match(await outcomeOf(client), code);
}

async function admitted(client: TLSSocket): Promise<void> {
  assert.equal(await outcomeOf(client), 'secureConnect');
}

function countOf(proxy: RunningProxy, name: string): ReturnType<RunningProxy['view']>['services'][number] {
  return proxy.view().services.find((service) => service.name === name) ?? assert.fail(`no ${name}`);
}

async function unroutedOf({ adminAddress }: RunningProxy): Promise<{ received: number; sent: number }> {
  assert.ok(adminAddress);
  const response = await fetch(`http://${adminAddress.host}:${adminAddress.port}/metrics`);
  const text = await response.text();
  const countedOf = (direction: string): number =>
    Number(new RegExp(`^weir_unrouted_bytes_total\\{direction="${direction}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
  return { received: countedOf('received'), sent: countedOf('sent') };
}

test('routes the clients of two tenants on one port by server name, and counts them separately', async () => {
  await using scenario = await shared();
  const { proxy, shopEcho, gameEcho, ask } = scenario;
  const buyer = await opened(ask('eu.shop.example'));
  await opened(ask('GAME.example'));
  await opened(ask('game.shop.example'));
  assert.deepEqual(shopEcho.names, ['eu.shop.example']);
  assert.deepEqual(gameEcho.names, ['GAME.example', 'game.shop.example']);
  await eventually(() => assert.equal(countOf(proxy, 'shop').active, 1));
  assert.equal(countOf(proxy, 'game').active, 2);
  const { receivedBytes } = countOf(proxy, 'shop').counters;
  assert.ok(receivedBytes >= buyer.bytesWritten, `${receivedBytes} of ${buyer.bytesWritten}`);
  for (const { bound, listening } of proxy.view().listeners) assert.deepEqual([bound, listening], [true, true]);
  assert.equal(proxy.view().listeners.length, 2);
});

test('answers an unknown or missing server name with an alert, and counts it for no Service', async () => {
  await using scenario = await shared();
  const { fleet, proxy, ask } = scenario;
  for (const name of ['a.eu.shop.example', '']) await refusedWith(ask(name), /UNRECOGNIZED_NAME/);
  const before = await unroutedOf(proxy);
  const hello = clientHelloRecord({ extensions: [serverNameExtension('other.example')] });
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  await client.send(hello);
  assert.deepEqual([...(await client.take(7))], [21, 3, 3, 0, 2, 2, 112]);
  await client.end();
  await eventually(async () => {
    const { received, sent } = await unroutedOf(proxy);
    assert.deepEqual([received - before.received, sent - before.sent], [hello.length, 7]);
  });
  for (const name of ['shop', 'game']) {
    assert.deepEqual(outcomesFor(proxy, name), {});
    assert.equal(countOf(proxy, name).counters.receivedBytes, 0);
  }
});

test('a suspended Service loses its connections and answers with alerts, without affecting others', async () => {
  await using scenario = await shared();
  const { fleet, proxy, ask } = scenario;
  const gamer = await opened(ask('game.example'));
  const buyer = await opened(ask('eu.shop.example'));
  const lost = new Promise((resolve) => gamer.once('close', resolve));
  await fleet.cutOff({ kind: 'tenant', tenant: 'game' });
  await lost;
  await refusedWith(ask('game.example'), /ACCESS_DENIED/);
  await echoes(buyer);
  await opened(ask('us.shop.example'));
  await eventually(() => assert.deepEqual(outcomesFor(proxy, 'game'), { 'cut-off': 2 }));
  const [game, shop] = ['game', 'shop'].map((name) =>
    proxy.view().listeners.find(({ service }) => service === `uid-${name}-${name}`),
  );
  assert.deepEqual([game?.bound, game?.listening, shop?.bound, shop?.listening], [true, false, true, true]);
});

test('changed hosts apply to new connections only', async () => {
  await using scenario = await shared();
  const { fleet, shop, game, gameEcho, ask } = scenario;
  const gamer = await opened(ask('game.example'));
  const buyer = await opened(ask('eu.shop.example'));
  await fleet.serve(shop, sharing('game', gameEcho, ['play.example']));
  await eventually(() => admitted(ask('play.example')));
  await refusedWith(ask('game.example'), /UNRECOGNIZED_NAME/);
  await opened(ask('game.shop.example'));
  assert.ok(scenario.shopEcho.names.includes('game.shop.example'), 'the wildcard still matches');
  await Promise.all([echoes(gamer), echoes(buyer)]);
  await fleet.serve(game);
  await eventually(() => refusedWith(ask('eu.shop.example'), /UNRECOGNIZED_NAME/));
  await echoes(gamer);
});

test('a Service without endpoints answers with alerts, and the port closes when no Service has endpoints', async () => {
  await using scenario = await shared();
  const { fleet, proxy, shop, game, ask } = scenario;
  await fleet.serve({ ...shop, endpoints: [] }, game);
  await eventually(() => refusedWith(ask('eu.shop.example'), /INTERNAL_ERROR/));
  await opened(ask('game.example'));
  await fleet.serve({ ...shop, endpoints: [] }, { ...game, endpoints: [] });
  await eventually(() => refusedWith(ask('game.example'), /ECONNREFUSED/));
  for (const { bound, listening } of proxy.view().listeners) assert.deepEqual([bound, listening], [true, false]);
  await fleet.serve(shop, game);
  await eventually(async () => assert.ok(proxy.view().listeners.every(({ listening }) => listening)));
  await opened(ask('eu.shop.example'));
});

test('applies limits and source ranges of the Service that the client names', async () => {
  await using scenario = await shared();
  const { fleet, proxy, shop, game, ask } = scenario;
  fleet.limit('game', { connections: 1 });
  await fleet.serve({ ...shop, settings: { ...shop.settings, sourceRanges: ['192.0.2.0/24'] } }, game);
  await eventually(() => refusedWith(ask('eu.shop.example'), /ACCESS_DENIED/));
  await opened(ask('game.example'));
  await refusedWith(ask('game.example'), /ECONNRESET/);
  await eventually(() => assert.equal(outcomesFor(proxy, 'game')?.['connection-limit'], 1));
});

test('a Service that had a port alone and now shares it keeps its connections', async () => {
  await using scenario = await shared();
  const { fleet, proxy, shop, game, ask } = scenario;
  await fleet.serve({ ...shop, shared: false, settings: { ...shop.settings, drainTimeoutMs: 1 } });
  await waitForTable(fleet, proxy);
  const buyer = await opened(ask('eu.shop.example'));
  await fleet.serve({ ...shop, settings: { ...shop.settings, drainTimeoutMs: 1 } }, game);
  await eventually(() => admitted(ask('game.example')));
  await echoes(buyer);
});

test('counts a silent connection on a shared port for no Service, and ends it with the proxy', async () => {
  await using scenario = await shared();
  const { fleet, proxy } = scenario;
  await using silent = await connectClient({ host: fleet.addressOf(), port: PORT });
  await silent.send(Buffer.of(0x16, 3));
  await proxy.close({ drainMs: 0 });
  assert.equal((await silent.ended).kind, 'error');
});

test('silent clients are displaced, oldest first, and clients with a ClientHello are served', async () => {
  await using scenario = await shared();
  const { fleet, proxy, ask } = scenario;
  const before = await opened(ask('eu.shop.example'));
  const silent: Socket[] = [];
  let left = 0;
  const join = async (): Promise<void> => {
    const socket = connect({ host: fleet.addressOf(), port: PORT });
    silent.push(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        left += 1;
      });
    socket.resume();
    await once(socket, 'connect');
  };
  const maxPending = 1_024 * proxy.view().workers;
  try {
    while (silent.length < maxPending + 400) await Promise.all(Array.from({ length: 200 }, join));
    await eventually(() => assert.ok(left >= silent.length - maxPending, `${left} of ${silent.length} were displaced`));
    assert.equal(silent[0]?.destroyed, true);
    assert.equal(silent.at(-1)?.destroyed, false);
    await opened(ask('game.example'));
    await echoes(before);
  } finally {
    for (const socket of silent) socket.destroy();
  }
});
