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
  /** Called during each probe. */
  onProbe: () => Promise<void>;
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
    await scenario.onProbe();
    return scenario.answer;
  };
  const reaper = new LeaseReaper({ leases, clock, log: silentLogger(), probe });
  const scenario: Scenario = {
    reaper,
    clock,
    probed,
    kept,
    answer: 'none',
    onProbe: async () => undefined,
    members: async () => (await store.leases.members()).map(({ node, life }) => `${node}/${life}`).sort(),
    exchange,
    [Symbol.asyncDispose]: () => reaper.close(),
  };
  return scenario;
}

function heartbeat(node: string, life: number, admin: Heartbeat['admin'] | null = ADMIN): Heartbeat {
  return { node, life, ...(admin === null ? {} : { admin }) } as Heartbeat;
}

/** Gives the heartbeats to the reaper, and lets `b/1` exchange leases for 1 s, so that the other members are silent. */
async function silence(scenario: Scenario, ...heartbeats: Heartbeat[]): Promise<void> {
  scenario.reaper.onHeartbeats(heartbeats);
  for (let ms = 0; ms < 1_000; ms += 100) {
    await scenario.clock.advance(100);
    await scenario.exchange('b/1');
  }
  await scenario.clock.advance(250);
}

/** Lets the reaper see that the admin server of `a/1` accepts connections. */
async function acceptOnce(scenario: Scenario, admin: Heartbeat['admin'] | null = ADMIN): Promise<void> {
  scenario.answer = 'accepted';
  scenario.reaper.onHeartbeats([heartbeat('a', 1, admin)]);
  await scenario.clock.advance(50);
  scenario.probed.length = 0;
}

test('releases a silent member whose host refuses connections, although the member has a heartbeat', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await acceptOnce(scenario);
  scenario.answer = 'refused';
  await silence(scenario, heartbeat('a', 1), heartbeat('b', 1, null));
  assert.deepEqual(scenario.probed, [ADMIN.host]);
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('keeps a silent member whose admin server accepts connections, before its shares expire', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await acceptOnce(scenario);
  for (let round = 0; round < 23; round += 1) await silence(scenario, heartbeat('a', 1), heartbeat('b', 1, null));
  assert.deepEqual(scenario.kept, []);
  for (let round = 0; round < 32; round += 1) await silence(scenario, heartbeat('b', 1, null));
  assert.deepEqual(scenario.kept, ['a/1', 'a/1']);
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
  assert.ok(scenario.probed.length <= 70, 'probes once per second');
});

for (const [name, accepts, answer] of [
  ['nothing answers at its address', true, 'none'],
  ['its host has always refused connections, as a firewall does', false, 'refused'],
] as const) {
  test(`releases a silent member only when its heartbeat has expired if ${name}`, async () => {
    await using scenario = await startScenario('a/1', 'b/1');
    if (accepts) await acceptOnce(scenario);
    scenario.answer = answer;
    await silence(scenario, heartbeat('a', 1), heartbeat('b', 1, null));
    assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
    await silence(scenario, heartbeat('b', 1, null));
    assert.deepEqual(await scenario.members(), ['b/1']);
    assert.deepEqual(scenario.kept, []);
  });
}

test('leaves a member that drains to the store after it has closed its admin server', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await acceptOnce(scenario);
  scenario.answer = 'refused';
  await silence(scenario, heartbeat('a', 1, null), heartbeat('b', 1, null));
  await silence(scenario, heartbeat('b', 1, null));
  assert.deepEqual(scenario.probed, []);
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
});

test('keeps a member without a heartbeat that exchanges leases', async () => {
  await using scenario = await startScenario('b/1');
  await silence(scenario, heartbeat('b', 1));
  await silence(scenario);
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('keeps a member that exchanges leases during the probe', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await acceptOnce(scenario);
  scenario.answer = 'refused';
  scenario.onProbe = () => scenario.exchange('a/1');
  await silence(scenario, heartbeat('a', 1), heartbeat('b', 1, null));
  assert.deepEqual(scenario.probed, [ADMIN.host]);
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
});

test('checks nothing after 3 s without heartbeats', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  await acceptOnce(scenario);
  scenario.answer = 'refused';
  await scenario.clock.advance(3_000);
  for (let run = 0; run < 10; run += 1) {
    await scenario.exchange('b/1');
    await scenario.clock.advance(1_000);
  }
  assert.deepEqual(scenario.probed, []);
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
});

for (const [name, admin] of [
  ['unknown', null],
  ['a loopback address', { ...ADMIN, host: '127.0.0.1' }],
  ['any address of the host', { ...ADMIN, host: '::' }],
] as const) {
  test(`leaves a member to the store if the address of its admin server is ${name}`, async () => {
    await using scenario = await startScenario('a/1', 'b/1');
    await silence(scenario, heartbeat('a', 1, admin), heartbeat('b', 1, null));
    await silence(scenario, heartbeat('b', 1, null));
    assert.deepEqual(scenario.probed, []);
    assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
  });
}

test('leaves a member to the store while another incarnation of the node is alive', async () => {
  await using scenario = await startScenario('a/1', 'a/2', 'b/1');
  await acceptOnce(scenario);
  scenario.answer = 'refused';
  await silence(scenario, heartbeat('a', 1), heartbeat('a', 2, null), heartbeat('b', 1, null));
  await silence(scenario, heartbeat('a', 2, null), heartbeat('b', 1, null));
  assert.deepEqual(scenario.probed, []);
  await silence(scenario, heartbeat('b', 1, null));
  assert.deepEqual(await scenario.members(), ['a/2', 'b/1']);
});

test('releases a member without a heartbeat that is silent for 5 s beside another incarnation of its node', async () => {
  await using scenario = await startScenario('a/1', 'a/2', 'b/1');
  const serve = async (): Promise<void> => {
    await silence(scenario, heartbeat('a', 1, null), heartbeat('b', 1, null));
    await scenario.exchange('a/1');
  };
  for (let round = 0; round < 3; round += 1) await serve();
  assert.deepEqual(await scenario.members(), ['a/1', 'a/2', 'b/1']);
  for (let round = 0; round < 2; round += 1) await serve();
  assert.deepEqual(await scenario.members(), ['a/1', 'b/1']);
});

test('releases a member that has expired although the address of its admin server is unknown', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  for (let second = 0; second < 62; second += 1) await silence(scenario, heartbeat('b', 1, null));
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('probes a member again whose first probe got no answer, so that a later refusal is proof', async () => {
  await using scenario = await startScenario('a/1', 'b/1');
  const beat = async (): Promise<void> => {
    scenario.reaper.onHeartbeats([heartbeat('a', 1), heartbeat('b', 1, null)]);
    for (const member of ['a/1', 'b/1']) await scenario.exchange(member);
    await scenario.clock.advance(500);
  };
  await beat();
  scenario.answer = 'accepted';
  for (let half = 0; half < 21; half += 1) await beat();
  assert.equal(scenario.probed.length, 2);
  scenario.answer = 'refused';
  await silence(scenario, heartbeat('a', 1), heartbeat('b', 1, null));
  assert.deepEqual(await scenario.members(), ['b/1']);
});

test('a listening server accepts connections, a closed port refuses them', async () => {
  await using server = await echoServer();
  assert.equal(await probeAddress(server), 'accepted');
  assert.equal(await probeAddress({ host: '127.0.0.1', port: await freePort() }), 'refused');
});
