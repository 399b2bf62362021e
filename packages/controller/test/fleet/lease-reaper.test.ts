import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Heartbeat } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { type LeaseStore, MemoryStore } from '@weir/store';
import { echoServer, freePort } from '@weir/testkit';
import { LeaseReaper, type ProbeAnswer, probeAddress } from '../../src/fleet/lease-reaper.ts';

const ADMIN = { host: '192.0.2.1', port: 7_070, tls: true };

interface Scenario extends AsyncDisposable {
  readonly reaper: LeaseReaper;
  readonly clock: ManualClock;
  /** The addresses that were probed, in order. */
  readonly probed: string[];
  /** The calls of `keep`. */
  readonly kept: string[];
  /** The answer to all probes. */
  answer: ProbeAnswer;
  members(): Promise<string[]>;
  /** Makes a member, given as `node/life`, exchange leases. */
  exchange(member: string): Promise<void>;
}

/** Starts a reaper, and registers members, given as `node/life`, in the leases. */
async function startScenario(...members: string[]): Promise<Scenario> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const [probed, kept]: [string[], string[]] = [[], []];
  const leases: Pick<LeaseStore, 'members' | 'keep' | 'release'> = {
    members: () => store.leases.members(),
    release: (node, life) => store.leases.release(node, life),
    keep(node, life) {
      kept.push(`${node}/${life}`);
      return store.leases.keep(node, life);
    },
  };
  let sequence = 0;
  const exchange = async (member: string): Promise<void> => {
    const [node = '', life] = member.split('/');
    sequence += 1;
    await store.leases.exchange({ node, life: Number(life), sequence, mayRaise: true, requests: [] });
  };
  for (const member of members) await exchange(member);
  const probe = async ({ host }: { readonly host: string }): Promise<ProbeAnswer> => {
    probed.push(host);
    return scenario.answer;
  };
  const reaper = new LeaseReaper({ leases, clock, log: silentLogger(), probe });
  const scenario: Scenario = {
    reaper,
    clock,
    probed,
    kept,
    answer: 'none',
    members: async () => (await store.leases.members()).map(({ node, life }) => `${node}/${life}`).sort(),
    exchange,
    [Symbol.asyncDispose]: () => reaper.close(),
  };
  return scenario;
}

function heartbeat(node: string, life: number, admin: Heartbeat['admin'] | null = ADMIN): Heartbeat {
  return { node, life, ...(admin === null ? {} : { admin }) } as Heartbeat;
}

async function read(scenario: Scenario, ...heartbeats: Heartbeat[]): Promise<void> {
  scenario.reaper.onHeartbeats(heartbeats);
  await scenario.clock.advance(240);
}

/** Lets the proxies have heartbeats, although only `b/1` exchanges leases, for 0.8 s. Returns the members at the end. */
async function silenceOfA(scenario: Scenario): Promise<string[]> {
  const heartbeats = [heartbeat('a', 1), heartbeat('b', 1, { ...ADMIN, host: '192.0.2.2' })];
  scenario.reaper.onHeartbeats(heartbeats);
  for (let ms = 0; ms < 800; ms += 100) {
    await scenario.clock.advance(100);
    await scenario.exchange('b/1');
  }
  await scenario.clock.advance(250);
  return scenario.members();
}

test('releases a member that exchanges no leases and whose host refuses connections, before its heartbeat expires', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  scenario.answer = 'refused';
  assert.deepEqual(await silenceOfA(scenario), ['b/1']);
  assert.deepEqual(scenario.probed, [ADMIN.host]);
});

test('keeps a member that exchanges no leases but whose admin server accepts connections', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  scenario.answer = 'accepted';
  assert.deepEqual(await silenceOfA(scenario), ['a/1', 'b/1']);
  assert.deepEqual(scenario.kept, ['a/1']);
});

test('waits until the heartbeat of a silent member expires if nothing answers at its address', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  assert.deepEqual(await silenceOfA(scenario), ['a/1', 'b/1']);
  assert.deepEqual(scenario.kept, []);
  await read(scenario, heartbeat('b', 1));
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('checks nothing when no heartbeats are read any more, because another controller may be the leader', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  scenario.answer = 'refused';
  await read(scenario, heartbeat('a', 1), heartbeat('b', 1));
  await scenario.clock.advance(4_000);
  await scenario.exchange('b/1');
  await scenario.clock.advance(10_000);
  assert.deepEqual(scenario.probed, []);
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
});

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
  scenario.answer = 'accepted';
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

test('a listening server accepts connections, a closed port refuses them', async () => {
  await using server = await echoServer();
  assert.equal(await probeAddress(server), 'accepted');
  assert.equal(await probeAddress({ host: '127.0.0.1', port: await freePort() }), 'refused');
});
