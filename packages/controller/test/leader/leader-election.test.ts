import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock, silentLogger, wait } from '@weir/runtime';
import type { Json, KubeApiRequest } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import {
  LEASE_DURATION_MS,
  observeLease,
  planElection,
  RENEW_DEADLINE_MS,
  releasedLease,
  startLeaderElection,
} from '../../src/leader/leader-election.ts';
import type { Leadership } from '../../src/leader/leadership.ts';

describe('planElection', () => {
  const now = { identity: 'me', now: Date.UTC(2026, 0, 1), monotonic: 100_000 };
  const theirs = { holderIdentity: 'them', leaseDurationSeconds: 15, renewTime: 'then', leaseTransitions: 3 };

  test('creates the Lease if there is none', () => {
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

  test('waits while the holder renews, and takes a Lease that is unchanged for its duration by the local clock', () => {
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

  test('takes a released Lease at once', () => {
    const step = planElection(observeLease(undefined, releasedLease(theirs, now.now), 100_000), now);
    assert.equal(step.kind, 'take');
  });

  test('renews its own Lease, and keeps the time of acquisition', () => {
    const mine = { ...theirs, holderIdentity: 'me', acquireTime: 'long ago' };
    const step = planElection(observeLease(undefined, mine, 0), now);
    assert.deepEqual(step.kind !== 'wait' && [step.kind, step.spec.acquireTime, step.spec.leaseTransitions], [
      'renew',
      'long ago',
      3,
    ]);
  });
});

/** A fake API server that keeps one Lease with optimistic concurrency. */
class FakeLeases {
  #lease: { spec: Json; version: number } | undefined;

  request = async ({ method, body }: KubeApiRequest): Promise<Json> => {
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

test('does not lose leadership to its own recheck during a round', async (context) => {
  const clock = new ManualClock();
  const lease = new FakeLeases();
  const api = {
    async request(request: KubeApiRequest): Promise<Json> {
      await wait(clock, 5);
      return lease.request(request);
    },
  };
  const election = startLeaderElection({ api, namespace: 'n', name: 'l', identity: 'a', clock, log: silentLogger() });
  context.after(() => closeElection(clock, election));
  const changes: boolean[] = [];
  election.onChange(() => changes.push(election.isLeader));
  const rechecked = election.recheck();
  await clock.advance(100);
  await rechecked;
  assert.deepEqual(changes, [true]);
});

test('does not lead after the process was stopped too long, even before a timer has run', async (context) => {
  const clock = new ManualClock();
  let stoppedMs = 0;
  const ownClock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + stoppedMs,
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
  stoppedMs = RENEW_DEADLINE_MS;
  assert.deepEqual([election.isLeader, changes], [false, []]);
  // The controller still holds the Lease, so it leads again. Listeners are called for the loss and for the election, because another
  // controller may have led in between.
  await election.recheck();
  assert.deepEqual([election.isLeader, changes], [true, [false, true]]);
});

/** Closes the election. Advances the clock while it waits, because closing waits for the responses to requests. */
async function closeElection(clock: ManualClock, election: Leadership): Promise<void> {
  const closed = election.close();
  await clock.advance(100);
  await closed;
}

describe('two candidates', () => {
  async function pair(context: TestContext) {
    const clock = new ManualClock();
    const lease = new FakeLeases();
    const unreachable = { a: false, b: false };
    /** For a slow candidate, the API server answers reads just before their timeout, and never answers writes. */
    const slow = { a: false, b: false };
    const join = (identity: 'a' | 'b'): Leadership => {
      const api = {
        async request(request: KubeApiRequest): Promise<Json> {
          if (slow[identity]) await wait(clock, (request.timeoutMs ?? 30_000) - 1);
          const isLost = slow[identity] && request.method !== 'GET';
          if (unreachable[identity] || isLost) throw new KubeApiError('AWAY', 'refused');
          return lease.request(request);
        },
      };
      const election = startLeaderElection({ api, namespace: 'n', name: 'l', identity, clock, log: silentLogger() });
      context.after(() => election.close());
      return election;
    };
    const a = join('a');
    await clock.advance(10);
    const b = join('b');
    await clock.advance(10);
    return { clock, a, b, unreachable, slow };
  }

  test('keep the same leader as long as it renews the Lease', async (context) => {
    const { clock, a, b } = await pair(context);
    for (let minute = 0; minute < 5; minute += 1) {
      await clock.advance(60_000);
      assert.deepEqual([a.isLeader, b.isLeader], [true, false]);
    }
  });

  test('never lead both: a leader that cannot renew stops before the other may take the Lease', async (context) => {
    const { clock, a, b, unreachable } = await pair(context);
    unreachable.a = true;
    for (let second = 0; second < 30; second += 1) {
      await clock.advance(1_000);
      assert.ok(!(a.isLeader && b.isLeader));
    }
    assert.deepEqual([a.isLeader, b.isLeader], [false, true]);
    unreachable.a = false;
    await clock.advance(10_000);
    assert.deepEqual([a.isLeader, b.isLeader], [false, true]);
  });

  test('never lead both, even if requests time out instead of failing', async (context) => {
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

  test('hand over at once when the leader closes', async (context) => {
    const { clock, a, b } = await pair(context);
    const changes: boolean[] = [];
    b.onChange(() => changes.push(b.isLeader));
    await a.close();
    await clock.advance(2_100);
    assert.deepEqual(changes, [true]);
  });
});
