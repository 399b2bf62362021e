import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ShareClaim } from '@weir/model';
import type { LeaseExchange, LeaseGrant, LeaseName, LeaseRequest, Store } from '../../src/contract.ts';
import type { StoreFixture, StoreUnderTest } from './store-fixture.ts';

const SHOP: LeaseName = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' };
const REGISTRATION_MS = 3_000;

export function leasesContract(subject: StoreUnderTest): void {
  describe(`the leases of ${subject.name}`, () => {
    test('grant what the other members do not hold, and return the claims of these members', async () => {
      await using world = await subject.open();
      const { a, b, c } = await registered(world);
      assert.deepEqual(await a.exchange(request(100, { wanted: 60, demand: 50 })), grant(60));
      assert.deepEqual(
        await b.exchange(request(100, { wanted: 60, demand: 70, weight: 2, floor: 5, used: 40 })),
        grant(40, { rank: 1, others: [claim(50)] }),
      );
      assert.deepEqual(
        await c.exchange(request(100, { wanted: 1 })),
        grant(0, { rank: 2, others: [claim(50), claim(70, 2, 5, 40)] }),
      );
      assert.deepEqual(
        await a.exchange(request(100, { held: 60, wanted: 61, demand: 80 })),
        grant(60, { others: [claim(70, 2, 5, 40), claim(0)] }),
      );
    });

    test('give a share that one member has given up to the next member that wants it', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 100 }));
      assert.equal((await b.exchange(request(100, { wanted: 30 }))).share, 0);
      assert.equal((await a.exchange(request(100, { held: 70, wanted: 70 }))).share, 70);
      assert.equal((await b.exchange(request(100, { wanted: 50 }))).share, 30);
      assert.equal((await a.exchange(request(100))).share, 0);
      assert.deepEqual(await b.exchange(request(100, { held: 30, wanted: 100 })), grant(100));
    });

    test('keep what a member still uses, although the member wants less', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 100 }));
      assert.equal((await a.exchange(request(100, { held: 80, wanted: 10 }))).share, 10);
      assert.equal((await b.exchange(request(100, { wanted: 90 }))).share, 20);
      assert.equal((await a.exchange(request(100, { held: 10, wanted: 10 }))).share, 10);
      assert.equal((await b.exchange(request(100, { held: 20, wanted: 90 }))).share, 90);
    });

    test('grant a member at least what the member holds, even if the limit is lower', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      assert.equal((await a.exchange(request(100, { held: 150, wanted: 200 }))).share, 150);
      assert.equal((await b.exchange(request(100, { held: 5, wanted: 50 }))).share, 5);
    });

    test('are exact up to 2^53', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      const limit = Number.MAX_SAFE_INTEGER;
      assert.equal((await a.exchange(request(limit, { wanted: limit - 1, demand: limit }))).share, limit - 1);
      assert.deepEqual(await b.exchange(request(limit, { wanted: 2 })), grant(1, { rank: 1, others: [claim(limit)] }));
    });

    test('are separate by owner and resource, and are granted in the order of the requests', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      const names: LeaseName[] = [
        SHOP,
        { ...SHOP, resource: 'requestsPerSecond' },
        { owner: { kind: 'tenant', name: 'game' }, resource: 'connections' },
        { owner: { kind: 'service', uid: 'shop' }, resource: 'connections' },
      ];
      const wantAll = names.map((name, index) => ({ ...request(10, { wanted: index + 1, demand: index }), ...name }));
      assert.deepEqual(
        (await a.exchangeAll(wantAll)).map(({ share }) => share),
        [1, 2, 3, 4],
      );
      const shares = await b.exchangeAll(wantAll.map((each) => ({ ...each, wanted: 10 })));
      assert.deepEqual(
        shares.map(({ share }) => share),
        [9, 8, 7, 6],
      );
    });

    test('ignore a repeated or late exchange', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 20 }));
      const late = a.next(request(100, { held: 20, wanted: 20 }));
      await a.exchange(request(100, { held: 20, wanted: 90 }));
      assert.deepEqual(await a.store.leases.exchange(late), []);
      assert.equal((await b.exchange(request(100, { wanted: 50 }))).share, 10);
    });

    test('count as fully used if a member has been silent for 2 s, whatever it has reported', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 60, demand: 20, weight: 2, floor: 3, used: 10 }));
      await world.passLeaseTime(1_500);
      assert.deepEqual((await b.exchange(request(100, { wanted: 10 }))).others, [claim(20, 2, 3, 10)]);
      await world.passLeaseTime(600);
      assert.deepEqual((await b.exchange(request(100, { held: 10, wanted: 10 }))).others, [claim(60, 2, 3, 60)]);
      await a.exchange(request(100, { held: 60, wanted: 60, demand: 90, used: 50 }));
      assert.deepEqual((await b.exchange(request(100, { held: 10, wanted: 10 }))).others, [claim(90, 1, 0, 50)]);
    });

    test('are not raised for a member that forbids this, nor during the registration after a loss of the data', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      const raised = await a.store.leases.exchange({ ...a.next(request(100, { wanted: 10 })), mayRaise: false });
      assert.equal(raised[0]?.share, 0);
      await a.exchange(request(100, { wanted: 100 }));
      await world.wipe();
      assert.equal((await b.exchange(request(100, { wanted: 50 }))).share, 0);
      await world.passLeaseTime(500);
      assert.equal((await a.exchange(request(100, { held: 100, wanted: 50 }))).share, 50);
      assert.equal((await b.exchange(request(100, { wanted: 50 }))).share, 0);
      await world.passLeaseTime(REGISTRATION_MS - 500);
      assert.equal((await a.exchange(request(100, { held: 50, wanted: 50 }))).share, 50);
      assert.equal((await b.exchange(request(100, { wanted: 60 }))).share, 50);
    });

    test('say how many connections the members have open', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      const { leases } = a.store;
      assert.equal(await leases.openConnections(SHOP.owner), 0);
      await a.exchangeAll([
        request(100, { held: 40, wanted: 60, demand: 50, floor: 33, used: 9 }),
        { ...request(100, { held: 7, wanted: 7, floor: 7 }), resource: 'requestsPerSecond' },
        { ...request(100, { held: 5, wanted: 5, floor: 5 }), owner: { kind: 'service', uid: 'shop' } },
      ]);
      await b.exchange(request(100, { held: 10, wanted: 10, floor: 8 }));
      assert.equal(await leases.openConnections(SHOP.owner), 41);
      assert.equal(await leases.openConnections({ kind: 'service', uid: 'shop' }), 5);
      await leases.release('a', 1);
      assert.equal(await leases.openConnections(SHOP.owner), 8);
    });

    test('return when a member is released', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 100, demand: 7 }));
      await b.exchange(request(100, { wanted: 10, demand: 3 }));
      await a.store.leases.release('b', 1);
      await a.store.leases.release('a', 2);
      assert.deepEqual(await memberNames(a.store), ['a 1', 'c 1']);
      await a.store.leases.release('a', 1);
      assert.deepEqual(await b.exchange(request(100, { wanted: 100 })), grant(100));
      assert.deepEqual(await memberNames(a.store), ['b 1', 'c 1']);
    });

    test('return after a minute of silence, unless somebody knows that the member lives', async () => {
      await using world = await subject.open();
      const { a, b, c } = await registered(world);
      await a.exchange(request(100, { wanted: 50 }));
      await b.exchange(request(100, { wanted: 50 }));
      await a.store.leases.keep('unknown', 1);
      for (let seconds = 0; seconds < 62; seconds += 2) {
        const { share } = await c.exchange(request(100, { wanted: 100 }));
        if (seconds < 50) assert.equal(share, 0);
        await world.passLeaseTime(2_000);
        await a.store.leases.keep('b', 1);
      }
      assert.equal((await c.exchange(request(100, { wanted: 100 }))).share, 50);
      assert.deepEqual(await memberNames(a.store), ['b 1', 'c 1']);
    });

    test('stay with all members when the clock of the store is set back, and return after a minute of silence', async () => {
      await using world = await subject.open();
      const { a, b, c } = await registered(world);
      await a.exchange(request(100, { wanted: 50 }));
      await b.exchange(request(100, { wanted: 50 }));
      await world.passLeaseTime(-3_600_000);
      for (let seconds = 0; seconds < 64; seconds += 2) {
        const { share } = await c.exchange(request(100, { wanted: 100 }));
        if (seconds < 58) assert.equal(share, 0, `after ${seconds} s`);
        assert.equal((await b.exchange(request(100, { held: 50, wanted: 50 }))).share, 50);
        await world.passLeaseTime(2_000);
      }
      assert.equal((await c.exchange(request(100, { wanted: 100 }))).share, 50);
      assert.deepEqual(await memberNames(a.store), ['b 1', 'c 1']);
    });

    test('say how long each member has been silent', async () => {
      await using world = await subject.open();
      const { a, b, c } = await registered(world);
      const silence = async (): Promise<Map<string, number>> =>
        new Map((await a.store.leases.members()).map(({ node, silentMs }) => [node, silentMs]));
      for (const member of [a, b, c]) await member.exchangeAll([]);
      await world.passLeaseTime(600_000);
      // The store was away, or no member has called: no member is silent compared with the others.
      for (const silentMs of (await silence()).values()) assert.ok(silentMs < 10_000, `${silentMs} ms`);
      await a.exchangeAll([]);
      await world.passLeaseTime(2_000);
      await b.exchangeAll([]);
      const silentMsByNode = await silence();
      assert.equal(silentMsByNode.get('b'), 0);
      for (const node of ['a', 'c']) {
        const silentMs = silentMsByNode.get(node) ?? 0;
        assert.ok(silentMs >= 2_000 && silentMs < 10_000, `${silentMs} ms`);
      }
      await world.passLeaseTime(-3_600_000);
      await b.exchangeAll([]);
      for (const silentMs of (await silence()).values()) assert.equal(silentMs, 0);
    });

    test('stay with all members when the clock of the store is set forward', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 60 }));
      await b.exchange(request(100, { wanted: 30 }));
      await world.passLeaseTime(3_600_000);
      assert.equal((await b.exchange(request(100, { held: 30, wanted: 50 }))).share, 30);
      await world.passLeaseTime(REGISTRATION_MS);
      assert.equal((await b.exchange(request(100, { held: 30, wanted: 50 }))).share, 40);
      assert.equal((await a.exchange(request(100, { held: 60, wanted: 60 }))).share, 60);
      assert.deepEqual(await memberNames(a.store), ['a 1', 'b 1', 'c 1']);
    });

    test('are not lost by the silence of a member while the store hears from no member', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 100 }));
      await world.passLeaseTime(600_000);
      assert.equal((await b.exchange(request(100, { wanted: 1 }))).share, 0);
      await world.passLeaseTime(REGISTRATION_MS);
      assert.equal((await b.exchange(request(100, { wanted: 1 }))).share, 0);
      assert.equal((await a.exchange(request(100, { held: 100, wanted: 60 }))).share, 60);
    });

    test('survive an outage of the store', async () => {
      await using world = await subject.open();
      const { a, b } = await registered(world);
      await a.exchange(request(100, { wanted: 90 }));
      await world.goAway();
      await assert.rejects(b.exchange(request(100, { wanted: 50 })), { code: 'AWAY' });
      await world.comeBack();
      await b.exchange(request(100));
      await world.passLeaseTime(REGISTRATION_MS);
      assert.equal((await b.exchange(request(100, { wanted: 50 }))).share, 10);
    });
  });
}

interface Member {
  readonly store: Store;
  /** Returns the next exchange of the member. */
  next(...requests: LeaseRequest[]): LeaseExchange;
  exchange(request: LeaseRequest): Promise<LeaseGrant>;
  exchangeAll(requests: readonly LeaseRequest[]): Promise<readonly LeaseGrant[]>;
}

/** Returns three members of a store in which shares may be raised. */
async function registered(world: StoreFixture): Promise<{ a: Member; b: Member; c: Member }> {
  const store = await world.connect();
  const [a, b, c] = [memberOf(store, 'a'), memberOf(store, 'b'), memberOf(store, 'c')];
  for (const member of [a, b, c]) await member.exchangeAll([]);
  await world.passLeaseTime(REGISTRATION_MS);
  return { a, b, c };
}

function memberOf(store: Store, node: string): Member {
  let sequence = 0;
  const next = (...requests: LeaseRequest[]): LeaseExchange => {
    sequence += 1;
    return { node, life: 1, sequence, mayRaise: true, requests };
  };
  return {
    store,
    next,
    async exchange(only) {
      const [first] = await store.leases.exchange(next(only));
      return first ?? assert.fail('no grant');
    },
    exchangeAll: (requests) => store.leases.exchange(next(...requests)),
  };
}

function request(
  limit: number,
  { held = 0, wanted = 0, demand = 0, weight = 1, floor = 0, used = 0 }: Partial<LeaseRequest & ShareClaim> = {},
): LeaseRequest {
  return { ...SHOP, limit, held, wanted, claim: claim(demand, weight, floor, used) };
}

function claim(demand: number, weight = 1, floor = 0, used = 0): ShareClaim {
  return { demand, weight, floor, used };
}

function grant(share: number, { rank = 0, others = [] }: Partial<LeaseGrant> = {}): LeaseGrant {
  return { share, rank, others };
}

async function memberNames(store: Store): Promise<string[]> {
  return (await store.leases.members()).map(({ node, life }) => `${node} ${life}`).sort();
}
