// Compares what tenants, leases, proxies and the ledger take in Redis with the table in docs/sizing.md.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { minuteOf, type TenantEntry } from '@weir/model';
import { requireProgram } from '@weir/tools';
import type { LeaseRequest, Store } from '../../src/contract.ts';
import { GONE_NODE_TTL_MS } from '../../src/limits.ts';
import { keysFor } from '../../src/redis/keys.ts';
import { heartbeat, openEpochAsLeader, publish, report } from '../contract/sample-data.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';

const page = readFileSync(new URL('../../../../docs/sizing.md', import.meta.url), 'utf8');
const NOW = minuteOf(Date.now());
const LIFE = 1_764_000_000;
const MANY = 1_000;

describe('the table of docs/sizing.md states the memory in Redis', requireProgram('redis'), () => {
  const { redis, fixture } = useSharedRedis();

  test('of a lease and of each proxy that shares the lease', async () => {
    await using world = fixture();
    const { leases } = await world.connect();
    const key = keysFor(world.fleet).lease(leaseOf(1));
    const share = async (proxies: number): Promise<number> => {
      for (let index = 0; index < proxies; index += 1) {
        const requests = [leaseOf(proxies)];
        await leases.exchange({ node: nodeName(index), life: LIFE, sequence: proxies, mayRaise: true, requests });
      }
      return bytesOf(key);
    };
    const [one, sixteen] = [await share(1), await share(16)];
    const perProxy = (sixteen - one) / 15;
    assertStated(perProxy, /^\| share of a limit \| ([\d,]+) per limit and proxy/m);
    assertStated(one - perProxy, /^\| limit with shares \| ([\d,]+) per limit/m);
  });

  test('of a proxy that is alive', async () => {
    await using world = fixture();
    const store = await world.connect();
    await store.usage.seed({ months: [], bases: [] });
    const keys = keysFor(world.fleet);
    const hashes = [keys.lives, keys.proxies, keys.leaseMembers, keys.usage.nodes, keys.usage.reported];
    await startProxies(store, MANY);
    const heartbeatBytes = await bytesOf(keys.proxy(nodeName(0), LIFE));
    const perProxy = (await bytesOf(...hashes)) / MANY + heartbeatBytes;
    assertStated(perProxy, /^\| proxy that is alive \| ([\d,]+) per proxy/m);
    const listeners = Array.from({ length: MANY }, (_, index) => listener(index));
    await store.heartbeats.record(heartbeat(nodeName(0), LIFE, { listeners }));
    const perPort = ((await bytesOf(keys.proxy(nodeName(0), LIFE))) - heartbeatBytes) / MANY;
    assertStated(perPort, /^\| heartbeat \| ([\d,]+) per port/m);
  });

  test('of a node that has no proxy any more, which is nothing after 30 days', async () => {
    await using world = fixture();
    const store = await world.connect();
    await store.usage.seed({ months: [], bases: [] });
    const { lives, usage } = keysFor(world.fleet);
    const hashes = [lives, usage.nodes, usage.folded, usage.goneNodes];
    const now = Date.now();
    await startProxies(store, MANY, Math.floor((now - GONE_NODE_TTL_MS) / 1_000));
    await store.usage.flush(report([[NOW, 10]], { node: nodeName(0), life: LIFE }));
    for (let index = 0; index < MANY; index += 1) await store.usage.fold(nodeName(index), 1);
    await store.usage.foldGoneNodes(new Set(), now);
    assertStated((await bytesOf(...hashes)) / MANY, /^\| node without a proxy \| ([\d,]+) per node/m);
    await store.usage.foldGoneNodes(new Set(), now + GONE_NODE_TTL_MS);
    assert.deepEqual(await store.heartbeats.knownNodes(), new Set());
    assert.deepEqual(await redis().hkeys(usage.folded), ['']);
    assert.equal(
      await redis().exists(lives, usage.nodes, usage.reported, usage.goneNodes, usage.bases(nodeName(0))),
      0,
    );
  });

  test('of a tenant and of its Services in the ledger', async () => {
    await using world = fixture();
    const store = await world.connect();
    await store.usage.seed({ months: [], bases: [] });
    const { table, usage } = keysFor(world.fleet);
    const { leader, position } = await openEpochAsLeader(store);
    const changes = Array.from({ length: 500 }, (_, index) => ({ kind: 'put', entry: tenant(index) }) as const);
    await publish(store, { leader, predecessor: position, changes, changedAt: 0 });
    for (let index = 0; index < 500; index += 1) {
      const { slots, ...rest } = report([[NOW, 1_000]], { tenant: tenantName(index), service: serviceUid(index) });
      const name = { namespace: tenantName(index), name: 'checkout-frontend' };
      await store.usage.flush({ ...rest, slots: slots.map((slot) => ({ ...slot, ...name })) });
    }
    const perTenant = (await bytesOf(table, usage.tenants)) / 500;
    assertStated(perTenant, /^\| tenant \| ([\d,]+) per tenant/m);
    assertStated((await bytesOf(usage.names)) / 500, /^\| ledger: name of a Service \| ([\d,]+) per Service/m);
    const month = (await store.usage.periods(tenantName(0), 'month'))[0] ?? assert.fail('no month');
    for (let index = 0; index < 500; index += 1)
      await store.usage.flush(report([[NOW, 1_000]], { tenant: 'shop', service: serviceUid(index) }));
    const perService = (await bytesOf(usage.sum('shop', month))) / 500;
    assertStated(perService, /^\| ledger: total of a month \| \d+ to ([\d,]+) per Service/m);
    // A tenant with one Service has a key of its own for it.
    assert.ok((await bytesOf(usage.sum(tenantName(0), month))) <= perService);
    assertStated(
      (await bytesOf(usage.bases('n1'))) / 1_000,
      /^\| ledger: last counters of a proxy \| ([\d,]+) per Service and proxy/m,
    );
  });

  async function bytesOf(...keys: readonly string[]): Promise<number> {
    const sizes = await Promise.all(keys.map((key) => redis().memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }
});

/** Fails if `bytes` is above the figure in the page, or below two thirds of it. */
function assertStated(bytes: number, pattern: RegExp): void {
  const [row, figure] = pattern.exec(page) ?? assert.fail(`docs/sizing.md has no row ${pattern}`);
  const stated = Number(figure?.replaceAll(',', ''));
  assert.ok(bytes <= stated && bytes >= stated / 1.5, `measured ${Math.ceil(bytes)} bytes, but the page says: ${row}`);
}

async function startProxies(store: Store, count: number, life = LIFE): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const node = nodeName(index);
    await store.heartbeats.record(heartbeat(node, life, { listeners: [] }));
    await store.usage.flush({ node, life, slots: [], isFull: true });
    await store.leases.exchange({ node, life, sequence: 1, mayRaise: true, requests: [] });
  }
}

const nodeName = (index: number): string => `worker-pool-a-${String(index).padStart(6, '0')}`;
const tenantName = (index: number): string => `team-${String(index).padStart(6, '0')}`;
const serviceUid = (index: number): string => `6f1c2d3e-0000-4a5b-8c7d-${String(index).padStart(12, '0')}`;

function leaseOf(held: number): LeaseRequest {
  const owner = { kind: 'tenant', name: tenantName(1) } as const;
  const claim = { demand: 120, weight: 1, floor: 0, used: 110 };
  return { owner, resource: 'newConnectionsPerSecond', limit: 220_000, claim, held: 1_000 + held, wanted: 1_000 };
}

function listener(index: number): ReturnType<typeof heartbeat>['listeners'][number] {
  const id = `listener/${nodeName(0)}/10.0.0.1/TCP/${10_000 + index}`;
  return { id, service: serviceUid(index), bound: true, listening: true, error: null };
}

function tenant(index: number): TenantEntry {
  const name = tenantName(index);
  return {
    kind: 'tenant',
    id: `tenant/${name}`,
    name,
    policy: 'default',
    namespaces: [name],
    limits: { connections: 1_000, newConnectionsPerSecond: 200, outBitsPerSecond: 100_000_000 },
    used: { services: 1, ports: 2 },
  };
}
