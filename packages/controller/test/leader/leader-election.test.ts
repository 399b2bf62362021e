import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock, silentLogger, wait } from '@weir/runtime';
import type { ApiRequest, Json } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import {
  LEASE_DURATION_MS,
  type LeaderElector,
  observeLease,
  planElection,
  RENEW_DEADLINE_MS,
  releasedLease,
  startLeaderElection,
} from '../../src/leader/leader-election.ts';

describe('the plan of an election', () => {
  const now = { identity: 'me', now: Date.UTC(2026, 0, 1), monotonic: 100_000 };
  const theirs = { holderIdentity: 'them', leaseDurationSeconds: 15, renewTime: 'then', leaseTransitions: 3 };

  test('is to make the Lease when there is none', () => {
    const step = planElection(undefined, now);
    assert.ok(step.kind === 'create');
    assert.deepEqual(step.spec, {
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
  });

  test('is to wait while somebody renews it, and to take it when nobody did for its duration by our own clock', () => {
    const seen = observeLease(undefined, theirs, 100_000);
    assert.deepEqual(planElection(seen, { ...now, monotonic: 100_000 + LEASE_DURATION_MS - 1 }), {
      kind: 'wait',
      holder: 'them',
    });
    const step = planElection(observeLease(seen, { ...theirs }, 114_000), {
      ...now,
      monotonic: 100_000 + LEASE_DURATION_MS,
    });
    assert.ok(step.kind === 'take');
    assert.equal(step.spec.leaseTransitions, 4);
    const renewed = observeLease(seen, { ...theirs, renewTime: 'later' }, 114_000);
    assert.equal(planElection(renewed, { ...now, monotonic: 100_000 + LEASE_DURATION_MS }).kind, 'wait');
  });

  test('is to take one that was given away, at once', () => {
    const step = planElection(observeLease(undefined, releasedLease(theirs, now.now), 100_000), now);
    assert.equal(step.kind, 'take');
  });

  test('is to renew ours, and keep since when', () => {
    const mine = { ...theirs, holderIdentity: 'me', acquireTime: 'long ago' };
    const step = planElection(observeLease(undefined, mine, 0), now);
    assert.deepEqual(step.kind !== 'wait' && [step.kind, step.spec.acquireTime, step.spec.leaseTransitions], [
      'renew',
      'long ago',
      3,
    ]);
  });
});

/** One Lease with optimistic concurrency, as an API server keeps it. */
class FakeLeases {
  #lease: { spec: Json; version: number } | undefined;

  request = async ({ method, body }: ApiRequest): Promise<Json> => {
    const given = body as { spec: Json; metadata: { resourceVersion?: string } } | undefined;
    if (method === 'GET' && this.#lease === undefined)
      throw new KubeApiError('NOT_FOUND', 'none', { missingName: 'lease' });
    if (method === 'POST' && this.#lease !== undefined) throw new KubeApiError('CONFLICT', 'exists');
    if (method === 'PUT' && given?.metadata.resourceVersion !== String(this.#lease?.version)) {
      throw new KubeApiError('CONFLICT', 'changed');
    }
    if (given !== undefined) this.#lease = { spec: given.spec, version: (this.#lease?.version ?? 0) + 1 };
    return { spec: this.#lease?.spec, metadata: { resourceVersion: String(this.#lease?.version) } };
  };
}

test('to look again while a round is under way does not lose the lead that it wins', async (context) => {
  const clock = new ManualClock();
  const lease = new FakeLeases();
  const api = {
    async request(request: ApiRequest): Promise<Json> {
      await wait(clock, 5);
      return lease.request(request);
    },
  };
  const election = startLeaderElection({ api, namespace: 'n', name: 'l', identity: 'a', clock, log: silentLogger() });
  context.after(() => finish(clock, election));
  const changes: boolean[] = [];
  election.onChange(() => changes.push(election.isLeader));
  const looked = election.recheck();
  await clock.advance(100);
  await looked;
  assert.deepEqual(changes, [true]);
});

test('a process that stood still does not lead from the moment in which it goes on, before any timer has run', async (context) => {
  const clock = new ManualClock();
  let stoodStillMs = 0;
  const ownClock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + stoodStillMs,
    setTimeout: clock.setTimeout.bind(clock),
  };
  const lease = new FakeLeases();
  const options = { api: lease, namespace: 'n', name: 'l', log: silentLogger() };
  const election = startLeaderElection({ ...options, identity: 'a', clock: ownClock });
  context.after(() => election.close());
  await clock.advance(10);
  const changes: boolean[] = [];
  election.onChange(() => changes.push(election.isLeader));
  assert.equal(election.isLeader, true);
  stoodStillMs = RENEW_DEADLINE_MS;
  assert.deepEqual([election.isLeader, changes], [false, []]);
  // It still holds the Lease, and takes up the lead again; whoever listens hears of both, since another may have held it in between.
  await election.recheck();
  assert.deepEqual([election.isLeader, changes], [true, [false, true]]);
});

/** Closing asks, and the answer takes its time. */
async function finish(clock: ManualClock, election: LeaderElector): Promise<void> {
  const closed = election.close();
  await clock.advance(100);
  await closed;
}

describe('two that stand for election', () => {
  async function pair(context: TestContext) {
    const clock = new ManualClock();
    const lease = new FakeLeases();
    const away = { a: false, b: false };
    /** Reads answer just before their time is over; writes do not. */
    const slow = { a: false, b: false };
    const stand = (identity: 'a' | 'b'): LeaderElector => {
      const api = {
        async request(request: ApiRequest): Promise<Json> {
          if (slow[identity]) await wait(clock, (request.timeoutMs ?? 30_000) - 1);
          const isLost = slow[identity] && request.method !== 'GET';
          if (away[identity] || isLost) throw new KubeApiError('AWAY', 'refused');
          return lease.request(request);
        },
      };
      const election = startLeaderElection({ api, namespace: 'n', name: 'l', identity, clock, log: silentLogger() });
      context.after(() => election.close());
      return election;
    };
    const a = stand('a');
    await clock.advance(10);
    const b = stand('b');
    await clock.advance(10);
    return { clock, a, b, away, slow };
  }

  test('agree on one, for as long as it renews', async (context) => {
    const { clock, a, b } = await pair(context);
    for (let minute = 0; minute < 5; minute += 1) {
      await clock.advance(60_000);
      assert.deepEqual([a.isLeader, b.isLeader], [true, false]);
    }
  });

  test('are never both leaders: who cannot renew steps back before the other may', async (context) => {
    const { clock, a, b, away } = await pair(context);
    away.a = true;
    for (let second = 0; second < 30; second += 1) {
      await clock.advance(1_000);
      assert.ok(!(a.isLeader && b.isLeader));
    }
    assert.deepEqual([a.isLeader, b.isLeader], [false, true]);
    away.a = false;
    await clock.advance(10_000);
    assert.deepEqual([a.isLeader, b.isLeader], [false, true]);
  });

  test('are never both leaders, also when answers do not come instead of being refused', async (context) => {
    const { clock, a, b, slow } = await pair(context);
    slow.a = true;
    const seen = new Set<string>();
    for (let second = 0; second < 40; second += 1) {
      await clock.advance(1_000);
      seen.add([a.isLeader && 'a', b.isLeader && 'b'].filter(Boolean).join(' and '));
    }
    slow.a = false;
    await clock.advance(10_000);
    assert.deepEqual([...seen], ['a', '', 'b']);
  });

  test('hand over at once when the leader goes in good order', async (context) => {
    const { clock, a, b } = await pair(context);
    const changes: boolean[] = [];
    b.onChange(() => changes.push(b.isLeader));
    await a.close();
    await clock.advance(2_100);
    assert.deepEqual(changes, [true]);
  });
});
