import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Heartbeat } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { type LeaseStore, MemoryStore } from '@weir/store';
import { echoServer, freePort } from '@weir/testkit';
import { acceptsConnections, LeaseReaper } from '../../src/fleet/lease-reaper.ts';

const ADMIN = { host: '192.0.2.1', port: 7_070, tls: true };

interface Scenario extends AsyncDisposable {
  readonly reaper: LeaseReaper;
  readonly clock: ManualClock;
  /** The addresses that were probed, in order. */
  readonly probed: string[];
  /** The calls of `keep`. */
  readonly kept: string[];
  /** Whether the proxies accept connections. */
  isAlive: boolean;
  members(): Promise<string[]>;
}

/** Starts a reaper, and registers members, given as `node/life`, in the leases. */
async function startScenario(...members: string[]): Promise<Scenario> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const [probed, kept]: [string[], string[]] = [[], []];
  const leases: Pick<LeaseStore, 'members' | 'keep' | 'release'> = {
    members: () => store.leases.members(),
    release: (node, life) => store.leases.release(node, life),
    keep: async (node, life) => void kept.push(`${node}/${life}`),
  };
  for (const member of members) {
    const [node = '', life] = member.split('/');
    await store.leases.exchange({ node, life: Number(life), sequence: 1, mayRaise: true, requests: [] });
  }
  const probe = async ({ host }: { readonly host: string }): Promise<boolean> => {
    probed.push(host);
    return scenario.isAlive;
  };
  const reaper = new LeaseReaper({ leases, clock, log: silentLogger(), probe });
  const scenario: Scenario = {
    reaper,
    clock,
    probed,
    kept,
    isAlive: false,
    members: async () => (await store.leases.members()).map(({ node, life }) => `${node}/${life}`).sort(),
    [Symbol.asyncDispose]: () => reaper.close(),
  };
  return scenario;
}

function heartbeat(node: string, life: number, admin: Heartbeat['admin'] | null = ADMIN): Heartbeat {
  return { node, life, ...(admin === null ? {} : { admin }) } as Heartbeat;
}

async function read(scenario: Scenario, ...heartbeats: Heartbeat[]): Promise<void> {
  scenario.reaper.onHeartbeats(heartbeats);
  await scenario.clock.advance(1_000);
}

test('releases a member without a heartbeat whose admin server accepts no connection', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await read(scenario, heartbeat('a', 1), heartbeat('b', 1));
  assert.deepEqual(scenario.probed, []);
  await read(scenario, heartbeat('b', 1));
  assert.deepEqual(scenario.probed, [ADMIN.host, ADMIN.host]);
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('keeps a member without a heartbeat whose admin server accepts connections', async () => {
  await using scenario = await startScenario('a/1');
  scenario.isAlive = true;
  await read(scenario, heartbeat('a', 1));
  await read(scenario);
  await read(scenario);
  assert.deepEqual(scenario.kept, ['a/1', 'a/1']);
  assert.deepEqual(await scenario.members(), ['a/1']);
});

for (const [name, admin] of [
  ['unknown', null],
  ['a loopback address', { ...ADMIN, host: '127.0.0.1' }],
  ['any address of the host', { ...ADMIN, host: '::' }],
] as const) {
  test(`leaves a member to the store if the address of its admin server is ${name}`, async () => {
    await using scenario = await startScenario('a/1');
    await read(scenario, heartbeat('a', 1, admin));
    await read(scenario);
    assert.deepEqual(scenario.probed, []);
    assert.deepEqual(await scenario.members(), ['a/1']);
  });
}

test('leaves a member to the store while another incarnation of the node is alive', async () => {
  await using scenario = await startScenario('a/1', 'a/2');
  await read(scenario, heartbeat('a', 1), heartbeat('a', 2));
  await read(scenario, heartbeat('a', 2));
  assert.deepEqual(scenario.probed, []);
  await read(scenario);
  assert.deepEqual(await scenario.members(), []);
});

test('a listening server accepts connections, a closed port does not', async () => {
  await using server = await echoServer();
  assert.equal(await acceptsConnections(server), true);
  assert.equal(await acceptsConnections({ host: '127.0.0.1', port: await freePort() }), false);
});
