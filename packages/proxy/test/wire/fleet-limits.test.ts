// Tests that a limit holds over three proxies that share a store.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, systemClock } from '@weir/runtime';
import type { LeaseGrant } from '@weir/store';
import { connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import type { RunningProxy } from '../../src/index.ts';
import { type Fleet, startFleet, waitForTable } from '../fixtures/fleet.ts';
import { echoing, load } from '../fixtures/fleet-clients.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const NODES = ['a', 'b', 'c'] as const;
const LIMIT = 100;
const LOAD_MS = 3_000;

for (const nodes of [['a'], ['a', 'b'], ['a', 'b', 'c']]) {
  test(`${LIMIT} new connections per second over three proxies, with clients of ${nodes.length}`, async () => {
    await using stack = new AsyncDisposableStack();
    const { fleet } = await threeProxies(stack, { newConnectionsPerSecond: LIMIT });
    await load(fleet, nodes, 2_000);
    const { admitted, seconds } = await load(fleet, nodes, LOAD_MS);
    // A busy machine takes longer to make the attempts, and then more of them are admitted.
    assert.ok(admitted >= 0.8 * LIMIT * (LOAD_MS / 1_000), `${admitted} in ${seconds} s`);
    assert.ok(admitted <= LIMIT * (seconds + 1), `${admitted} in ${seconds} s`);
  });
}

test('connections of all proxies count together, and a share moves to the proxy whose clients need it', async () => {
  await using stack = new AsyncDisposableStack();
  const { fleet, shares } = await threeProxies(stack, { connections: 12 });
  // The first proxy has the whole limit until its next exchange, while each further proxy begins with one unit.
  await eventually(() => {
    assert.equal(shares.size, NODES.length);
    assert.ok(sumOf(shares.values()) <= 12, JSON.stringify([...shares]));
  });
  const open = new Map<string, TestClient[]>(NODES.map((node) => [node, []]));
  const fill = async (node: string): Promise<void> => {
    for (let client = await echoing(fleet, node); client !== undefined; client = await echoing(fleet, node))
      open.get(node)?.push(client);
  };
  const openCount = (): number => [...open.values()].flat().length;
  // The other proxies keep at most one connection each.
  const isFilled = (node: string): boolean => (open.get(node)?.length ?? 0) >= 10;
  await eventually(async () => {
    await fill('a');
    assert.ok(isFilled('a'));
  });
  await eventually(async () => {
    await fill('b');
    await fill('c');
    assert.equal(openCount(), 12);
  });
  await Promise.all((open.get('a') ?? []).splice(0).map((client) => client.close()));
  await eventually(async () => {
    await fill('b');
    assert.ok(isFilled('b'));
  });
  assert.ok(openCount() <= 12, `${openCount()}`);
  for (const client of [...open.values()].flat()) await client.close();
});

test('a proxy that closes gives its share to the other proxies', async () => {
  await using stack = new AsyncDisposableStack();
  const { fleet, proxies } = await threeProxies(stack, { connections: 6 });
  await proxies.get('b')?.close({ drainMs: 0 });
  await proxies.get('c')?.close({ drainMs: 0 });
  assert.deepEqual(
    (await fleet.store.leases.members()).map(({ node }) => node),
    ['a'],
  );
  const clients: TestClient[] = [];
  await eventually(async () => {
    const client = await echoing(fleet, 'a');
    if (client !== undefined) clients.push(client);
    assert.equal(clients.length, 6);
  });
  assert.equal(await echoing(fleet, 'a'), undefined);
  for (const client of clients) await client.close();
});

/** After this time, a proxy opens its listeners without shares. */
const MAX_START_MS = 1_000;
/** With this clock, a proxy waits for its shares much longer, so that the test passes on a busy machine and fails without shares. */
const clockWithoutStartTimer: Clock = {
  ...systemClock,
  setTimeout: (fn, ms) => systemClock.setTimeout(fn, ms === MAX_START_MS ? 3_600_000 : ms),
};

test('a proxy opens its listeners when it has its first shares', async () => {
  await using stack = new AsyncDisposableStack();
  const { fleet, proxies } = await threeProxies(stack, { connections: 6 });
  await proxies.get('c')?.close({ drainMs: 0 });
  const { leases } = fleet.store;
  const exchange = leases.exchange.bind(leases);
  const answer = Promise.withResolvers<void>();
  stack.defer(() => answer.resolve());
  leases.exchange = async (request) => {
    if (request.node === 'c') await answer.promise;
    return exchange(request);
  };
  const proxy = await fleet.proxy({ node: 'c', clock: clockWithoutStartTimer });
  await waitForTable(fleet, proxy);
  assert.equal(await connectError(fleet.addressOf('c'), PORT), 'ECONNREFUSED');
  answer.resolve();
  await proxy.ready;
  assert.equal(await connectError(fleet.addressOf('c'), PORT), undefined);
});

test('a proxy whose store does not answer opens its listeners after a second', async () => {
  await using stack = new AsyncDisposableStack();
  const fleet = stack.use(await startFleet({ nodes: ['a'] }));
  const backend = stack.use(await echoServer());
  fleet.limit('shop', { connections: 20 });
  await fleet.serve(webService([endpointOf(backend)]));
  const answer = Promise.withResolvers<readonly LeaseGrant[]>();
  stack.defer(() => answer.resolve([]));
  fleet.store.leases.exchange = () => answer.promise;
  const proxy = await fleet.proxy();
  await proxy.ready;
  const clients = [await echoing(fleet, 'a'), await echoing(fleet, 'a')];
  assert.ok(clients.every((client) => client !== undefined));
  assert.equal(await echoing(fleet, 'a'), undefined, 'a tenth of the limit is used');
  for (const client of clients) await client?.close();
});

async function threeProxies(
  stack: AsyncDisposableStack,
  limits: Parameters<Fleet['limit']>[1],
): Promise<{
  readonly fleet: Fleet;
  readonly proxies: ReadonlyMap<string, RunningProxy>;
  /** The last share that the store has granted to each node. Changes. */
  readonly shares: ReadonlyMap<string, number>;
}> {
  const fleet = stack.use(await startFleet({ nodes: NODES }));
  const backend = stack.use(await echoServer());
  fleet.limit('shop', limits);
  await fleet.serve(webService([endpointOf(backend)]));
  const shares = sharesOf(fleet);
  const proxies = new Map<string, RunningProxy>();
  for (const node of NODES) proxies.set(node, await fleet.proxy({ node }));
  await Promise.all([...proxies.values()].map((proxy) => proxy.ready));
  return { fleet, proxies, shares };
}

/** Returns the code of the error of a connection attempt; undefined if the attempt succeeded. */
async function connectError(host: string, port: number): Promise<string | undefined> {
  try {
    await (await connectClient({ host, port })).close();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/** Returns the last share that the store has granted to each node. The map changes. */
function sharesOf({ store }: Fleet): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  const { leases } = store;
  const exchange = leases.exchange.bind(leases);
  leases.exchange = async (request) => {
    const grants = await exchange(request);
    for (const { share } of grants) shares.set(request.node, share);
    return grants;
  };
  return shares;
}

function sumOf(numbers: Iterable<number>): number {
  return [...numbers].reduce((sum, each) => sum + each, 0);
}
