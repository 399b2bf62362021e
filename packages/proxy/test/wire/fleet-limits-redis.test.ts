// Tests shares of limits with a real Redis: each proxy has its own connection to the leases.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Secret, silentLogger } from '@weir/runtime';
import { openRedisStore, redisUsersFor, type Store } from '@weir/store';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { type Redis, requireProgram, startRedis } from '@weir/tools';
import { type Fleet, startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const LIMIT = 6;

describe('shares of limits in Redis', requireProgram('redis'), () => {
  test('add up to the limit, and stay while Redis is away', async () => {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await startRedis());
    const fleet = await startFleetWithLimit(stack);
    for (const node of ['a', 'b']) await startProxyWith(fleet, node, await openLeases(stack, fleet, redis));
    const open = stack.use(new OpenClients(fleet));
    // While the proxies start, they may admit more connections.
    await eventually(async () => {
      for (const node of ['a', 'b']) {
        while (open.count('a') + open.count('b') > LIMIT) await open.closeOne(node);
        await open.fill(node);
      }
      assert.equal(open.count('a') + open.count('b'), LIMIT);
    });
    await redis.stop({ signal: 'SIGKILL' });
    for (const node of ['a', 'b']) {
      assert.equal(await open.add(node), false);
      if (open.count(node) === 0) continue;
      await open.closeOne(node);
      await eventually(async () => assert.equal(await open.add(node), true));
      assert.equal(await open.add(node), false);
    }
  });

  test('are not kept for a Redis user without the right to leases: each proxy uses the whole limit and warns', async () => {
    await using stack = new AsyncDisposableStack();
    const fleet = await startFleetWithLimit(stack);
    const rules = redisUsersFor(fleet.name)['weir-proxy'].replace(/ \S*lease\*/, '');
    const redis = stack.use(await startRedis({ settings: [`user older on >PASSWORD ${rules}`] }));
    const proxies = [];
    for (const node of ['a', 'b'])
      proxies.push(await startProxyWith(fleet, node, await openLeases(stack, fleet, redis, 'older')));
    const open = stack.use(new OpenClients(fleet));
    for (const node of ['a', 'b']) {
      await eventually(async () => {
        await open.fill(node);
        assert.equal(open.count(node), LIMIT);
      });
    }
    for (const proxy of proxies)
      assert.match(proxy.view().hostAdvice?.join() ?? '', /lacks the right to the keys lease/);
  });
});

async function startFleetWithLimit(stack: AsyncDisposableStack): Promise<Fleet> {
  const fleet = stack.use(await startFleet({ nodes: ['a', 'b'] }));
  const backend = stack.use(await echoServer());
  fleet.limit('shop', { connections: LIMIT });
  await fleet.serve(webService([endpointOf(backend)]));
  return fleet;
}

async function openLeases(stack: AsyncDisposableStack, fleet: Fleet, redis: Redis, user?: string): Promise<Store> {
  const credentials = user === undefined ? {} : { username: user, password: new Secret('PASSWORD') };
  const store = await openRedisStore({ url: redis.url, ...credentials, fleet: fleet.name, log: silentLogger() });
  stack.defer(() => store.close());
  return store;
}

/** Starts a proxy with the table of the fleet's memory store and the leases of another store. */
async function startProxyWith(fleet: Fleet, node: string, leases: Store) {
  const store = new Proxy<Store>(fleet.store, {
    get(target, name) {
      const from = name === 'leases' || name === 'connection' || name === 'onConnectionChange' ? leases : target;
      const value = from[name as keyof Store];
      return typeof value === 'function' ? value.bind(from) : value;
    },
  });
  const proxy = await fleet.proxy({ node, store });
  await proxy.ready;
  return proxy;
}

class OpenClients implements AsyncDisposable {
  readonly #fleet: Fleet;
  readonly #clients = new Map<string, TestClient[]>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  count(node: string): number {
    return this.#clients.get(node)?.length ?? 0;
  }

  /** Opens a connection to a node. Returns false if the proxy refuses it. */
  async add(node: string): Promise<boolean> {
    try {
      const client = await connectClient({ host: this.#fleet.addressOf(node), port: PORT });
      await client.send('x');
      await client.take(1);
      this.#clients.set(node, [...(this.#clients.get(node) ?? []), client]);
      return true;
    } catch {
      return false;
    }
  }

  async fill(node: string): Promise<void> {
    while (await this.add(node));
  }

  async closeOne(node: string): Promise<void> {
    await this.#clients.get(node)?.pop()?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [...this.#clients.values()].flat()) await client.close();
  }
}
