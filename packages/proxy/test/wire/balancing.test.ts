// Tests which endpoints serve clients of many addresses, across workers, proxies and table changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildPool,
  createBalancer,
  createEndpointStats,
  createMatcher,
  EMPTY_POOL,
  endpointKey,
  fillMaglevSlots,
  MAGLEV_SLOTS,
} from '@weir/model';
import { eventually } from '@weir/testkit';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointNameFor, type NamedEndpoint, namedEndpoint } from '../fixtures/named-endpoint.ts';
import { webService } from '../fixtures/services.ts';
import { type TestService, tableFor } from '../fixtures/tables.ts';

const SOURCES = Array.from({ length: 24 }, (_, i) => `127.0.1.${i + 1}`);

async function namesAt(host: string, sources: readonly string[] = SOURCES): Promise<string[]> {
  const names: string[] = [];
  for (const source of sources) names.push(await endpointNameFor(source, { host, port: PORT }));
  return names;
}

async function endpoints(stack: AsyncDisposableStack, names: string): Promise<NamedEndpoint[]> {
  const made = await Promise.all([...names].map(namedEndpoint));
  for (const each of made) stack.use(each);
  return made;
}

/**
 * Returns the name of the endpoint that the Maglev table assigns to each source address. Without the table, rendezvous
 * hashing would choose other endpoints for many sources.
 */
function byMaglev(service: TestService, made: readonly NamedEndpoint[]): string[] {
  const [route] = createMatcher(tableFor({ a: '127.0.0.1' }, [service]), 'a').routes.values();
  assert.ok(route);
  const slots = new Uint16Array(MAGLEV_SLOTS);
  fillMaglevSlots(slots, route.endpoints.map(endpointKey));
  const endpoints = route.endpoints.map(createEndpointStats);
  const pool = buildPool(EMPTY_POOL, endpoints, { zone: null, maglev: { slots, endpoints } });
  const balancer = createBalancer(route, { random: () => 0, now: () => 0, affinityTable: undefined });
  return SOURCES.map((address) => {
    const chosen = balancer.choose(pool, { address, port: 1 }, []);
    return made.find(({ endpoint }) => endpoint.port === chosen?.endpoint.port)?.name ?? '';
  });
}

test('maglev: every worker of every proxy sends a client to the endpoint of the table', async () => {
  await using stack = new AsyncDisposableStack();
  const made = await endpoints(stack, 'abcde');
  const service = webService(
    made.map(({ endpoint }) => endpoint),
    { settings: { algorithm: 'maglev' } },
  );
  const expected = byMaglev(service, made);
  assert.ok(new Set(expected).size >= 4, expected.join(''));
  await using fleet = await startFleet({ nodes: ['a', 'b'] });
  await fleet.serve(service);
  for (const node of ['a', 'b']) {
    await (await fleet.proxy({ node, workers: 2 })).ready;
    await eventually(async () => assert.deepEqual(await namesAt(fleet.addressOf(node)), expected));
    for (let round = 0; round < 2; round += 1) assert.deepEqual(await namesAt(fleet.addressOf(node)), expected);
  }
});

test('ClientIP: added endpoints move no client, in any worker', async () => {
  await using stack = new AsyncDisposableStack();
  const made = await endpoints(stack, 'abcdef');
  const affinity = { kind: 'client-ip', timeoutMs: 600_000 } as const;
  const webOf = (count: number) =>
    webService(
      made.slice(0, count).map(({ endpoint }) => endpoint),
      { settings: { affinity } },
    );
  await using fleet = await startFleet();
  await fleet.serve(webOf(2));
  const proxy = await fleet.proxy({ workers: 2 });
  await proxy.ready;
  const before = await namesAt(fleet.addressOf());
  await fleet.serve(webOf(6));
  // Waits until a new client is sent to a new endpoint. This proves that the table has arrived.
  let newcomer = 1;
  await eventually(async () => {
    newcomer += 1;
    assert.match(await endpointNameFor(`127.0.2.${newcomer}`, { host: fleet.addressOf(), port: PORT }), /[cdef]/);
  });
  for (let round = 0; round < 3; round += 1) assert.deepEqual(await namesAt(fleet.addressOf()), before);
});

test('first: sends all clients to one endpoint, and to the next if that one refuses', async () => {
  await using stack = new AsyncDisposableStack();
  const [one, other] = await endpoints(stack, 'ab');
  assert.ok(one && other);
  await using fleet = await startFleet();
  await fleet.serve(webService([one.endpoint, other.endpoint], { settings: { algorithm: 'first' } }));
  await (await fleet.proxy({ workers: 2 })).ready;
  const before = new Set(await namesAt(fleet.addressOf()));
  assert.equal(before.size, 1);
  await (before.has('a') ? one : other)[Symbol.asyncDispose]();
  const after = new Set(await namesAt(fleet.addressOf()));
  assert.deepEqual(after, new Set([before.has('a') ? 'b' : 'a']));
});

for (const algorithm of ['random', 'round-robin', 'least-connections'] as const) {
  test(`${algorithm}: sends one client to all endpoints`, async () => {
    await using stack = new AsyncDisposableStack();
    const made = await endpoints(stack, 'abc');
    await using fleet = await startFleet();
    await fleet.serve(
      webService(
        made.map(({ endpoint }) => endpoint),
        { settings: { algorithm } },
      ),
    );
    await (await fleet.proxy({ workers: 2 })).ready;
    const names = await namesAt(fleet.addressOf(), new Array(60).fill('127.0.1.1'));
    assert.deepEqual(new Set(names), new Set('abc'));
  });
}
