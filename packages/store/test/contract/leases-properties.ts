import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ShareClaim, wantedShare } from '@weir/model';
import fc from 'fast-check';
import type { LeaseExchange, LeaseGrant, Store } from '../../src/contract.ts';
import type { StoreFixture, StoreUnderTest } from './store-fixture.ts';

const LIMIT = 100;
const NODES = ['n1', 'n2', 'n3', 'n4'] as const;
/** How long a member still uses a share after lowering it: the connections of the last second count against a rate. */
const LINGER_MS = 1_000;
const REGISTRATION_MS = 3_000;
const OUTAGE_MS = 120_000;

/**
 * Checks that the members never use more than the limit although exchanges are lost, late, repeated or unanswered, members start, end, and
 * crash, are cut off from the store for minutes, and the store loses its last changes or all its data; and that the members use the whole
 * limit some seconds after the last of these events.
 */
export function leasesProperties(subject: StoreUnderTest, { numRuns }: { readonly numRuns: number }): void {
  describe(`properties of the leases of ${subject.name}`, () => {
    test('the members never use more than the limit, and finally all of it', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(event(), { maxLength: 60, size: 'max' }), async (events) => {
          await using world = await subject.open();
          const fleet = new Fleet(world, await world.connect());
          for (const each of events) {
            await fleet.apply(each);
            assert.ok(fleet.used() <= LIMIT, `${fleet.used()} of ${LIMIT} used after ${each.kind}`);
          }
          await fleet.settle();
          assert.equal(fleet.used(), LIMIT);
        }),
        { numRuns },
      );
    });
  });
}

type Fate = 'delivered' | 'lost' | 'unanswered' | 'repeated' | 'late';

/** A proxy that follows the rules of `LeaseStore`. */
interface Member {
  readonly node: string;
  readonly life: number;
  sequence: number;
  demand: number;
  weight: number;
  /** The part of the share that the member cannot give up, from 0 to 1. */
  fixedPart: number;
  share: number;
  lingering: { readonly use: number; readonly until: number };
  grant: LeaseGrant;
  isCutOff: boolean;
  /** Whether the store has heard from the member since it lost its data. */
  isKnown: boolean;
  /** The member asks for no higher share before this time. */
  mayRaiseAt: number;
}

class Fleet {
  readonly #world: StoreFixture;
  readonly #store: Store;
  readonly #members = new Map<string, Member>();
  readonly #dead: Member[] = [];
  readonly #late: LeaseExchange[] = [];
  #rollBack: (() => Promise<void>) | undefined;
  #now = 0;
  #lives = 0;

  constructor(world: StoreFixture, store: Store) {
    this.#world = world;
    this.#store = store;
  }

  async apply(event: Event): Promise<void> {
    const member = this.#members.get(event.node);
    switch (event.kind) {
      case 'start':
        if (member === undefined) this.#start(event.node);
        break;
      case 'demand':
        if (member !== undefined) Object.assign(member, event.claim);
        break;
      case 'exchange':
        if (member !== undefined) await this.#exchange(member, event.fate);
        break;
      case 'deliver late':
        await this.#deliverLate(event.claim.demand);
        break;
      case 'cut off':
        if (member?.isKnown) member.isCutOff = !member.isCutOff;
        break;
      case 'leave':
        if (member !== undefined) await this.#leave(member);
        break;
      case 'crash':
        if (member !== undefined) this.#crash(member);
        break;
      case 'declare dead':
        await this.#declareDead();
        break;
      case 'second':
        await this.#pass(1);
        break;
      case 'minutes':
        await this.#pass(130);
        break;
      case 'checkpoint':
        this.#rollBack = await this.#world.checkpoint();
        break;
      case 'outage':
        await this.#world.passLeaseTime(OUTAGE_MS);
        this.#now += OUTAGE_MS;
        await this.#reconnect();
        break;
      case 'wipe':
        await this.#world.wipe();
        this.#endIsolation();
        await this.#reconnect();
        break;
      case 'unnoticed wipe':
        await this.#world.wipe();
        this.#endIsolation();
        for (const each of this.#members.values()) each.isKnown = false;
        break;
      case 'roll back':
        await this.#rollBack?.();
        this.#endIsolation();
        await this.#reconnect();
        break;
    }
  }

  /** Returns what all living members together may be using. */
  used(): number {
    return [...this.#members.values()].reduce((sum, member) => sum + this.#use(member), 0);
  }

  /** Ends all faults, and lets the members exchange their leases for some seconds. */
  async settle(): Promise<void> {
    if (this.#members.size === 0) this.#start(NODES[0]);
    while (this.#late.length > 0) await this.#deliverLate(0);
    await this.#declareDead();
    for (const member of this.#members.values()) Object.assign(member, { isCutOff: false, fixedPart: 0 });
    await this.#pass(10);
  }

  #start(node: string): void {
    this.#lives += 1;
    this.#members.set(node, {
      node,
      life: this.#lives,
      sequence: 0,
      demand: 0,
      weight: 1,
      fixedPart: 0,
      share: 0,
      lingering: { use: 0, until: 0 },
      grant: { share: 0, others: [], rank: 0 },
      isCutOff: false,
      isKnown: false,
      mayRaiseAt: 0,
    });
  }

  async #exchange(member: Member, fate: Fate): Promise<void> {
    const own = claimOf(member);
    const wanted = wantedShare({ limit: LIMIT, own, ...member.grant });
    if (wanted < member.share) {
      member.lingering = { use: this.#use(member), until: this.#now + LINGER_MS };
      member.share = wanted;
    }
    member.sequence += 1;
    const { node, life, sequence } = member;
    const exchange: LeaseExchange = {
      node,
      life,
      sequence,
      mayRaise: this.#now >= member.mayRaiseAt,
      requests: [
        {
          owner: { kind: 'tenant', name: 'shop' },
          resource: 'newConnectionsPerSecond',
          limit: LIMIT,
          claim: own,
          held: this.#use(member),
          wanted,
        },
      ],
    };
    if (fate === 'lost' || member.isCutOff) return;
    if (fate === 'late') {
      this.#late.push(exchange);
      return;
    }
    const [grant] = await this.#store.leases.exchange(exchange);
    member.isKnown = true;
    if (fate === 'unanswered') return;
    assert.ok(grant !== undefined, 'the last exchange of a member is processed');
    member.share = grant.share;
    member.grant = grant;
    if (fate === 'repeated') assert.deepEqual(await this.#store.leases.exchange(exchange), []);
  }

  /** Delivers an exchange whose sender no longer waits for the reply. */
  async #deliverLate(index: number): Promise<void> {
    const [exchange] = this.#late.splice(index % (this.#late.length || 1), 1);
    if (exchange !== undefined) await this.#store.leases.exchange(exchange);
  }

  async #leave(member: Member): Promise<void> {
    this.#crash(member);
    if (!member.isCutOff) await this.#store.leases.release(member.node, member.life);
  }

  #crash(member: Member): void {
    this.#members.delete(member.node);
    this.#dead.push(member);
  }

  /** Does what the leading controller does. Releases a member again if the store has forgotten the release. */
  async #declareDead(): Promise<void> {
    for (const { node, life } of this.#dead) await this.#store.leases.release(node, life);
  }

  /** Each member exchanges its leases every second. The controller keeps the members that are cut off only from the store. */
  async #pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      for (const member of this.#members.values()) {
        await this.#exchange(member, 'delivered');
        assert.ok(this.used() <= LIMIT, `${this.used()} of ${LIMIT} used after ${second} s`);
        if (member.isCutOff) await this.#store.leases.keep(member.node, member.life);
      }
      await this.#world.passLeaseTime(1_000);
      this.#now += 1_000;
    }
  }

  /** Connects the members that were cut off. The limit does not hold for members that are cut off while the store loses data. */
  #endIsolation(): void {
    for (const member of this.#members.values()) member.isCutOff = false;
  }

  /** All members notice that the connection was lost, and report at once what they hold. */
  async #reconnect(): Promise<void> {
    for (const member of this.#members.values()) member.mayRaiseAt = this.#now + REGISTRATION_MS;
    for (const member of this.#members.values()) await this.#exchange(member, 'delivered');
  }

  #use({ share, lingering }: Member): number {
    return this.#now < lingering.until ? Math.max(share, lingering.use) : share;
  }
}

function claimOf({ demand, weight, share, fixedPart }: Member): ShareClaim {
  return { demand, weight, floor: Math.floor(share * fixedPart), used: 0 };
}

interface Event {
  readonly kind: keyof typeof WEIGHTS;
  readonly node: string;
  readonly fate: Fate;
  readonly claim: Pick<Member, 'demand' | 'weight' | 'fixedPart'>;
}

const WEIGHTS = {
  start: 8,
  demand: 12,
  exchange: 24,
  'deliver late': 4,
  second: 8,
  'cut off': 3,
  leave: 2,
  crash: 2,
  'declare dead': 2,
  minutes: 1,
  outage: 1,
  checkpoint: 1,
  wipe: 1,
  'unnoticed wipe': 1,
  'roll back': 1,
} as const;

function event(): fc.Arbitrary<Event> {
  const kinds = Object.entries(WEIGHTS).flatMap(([kind, weight]) =>
    Array<keyof typeof WEIGHTS>(weight).fill(kind as never),
  );
  return fc.record({
    kind: fc.constantFrom(...kinds),
    node: fc.constantFrom(...NODES),
    fate: fc.constantFrom<Fate>('delivered', 'delivered', 'lost', 'unanswered', 'repeated', 'late'),
    claim: fc.record({
      demand: fc.nat(2 * LIMIT),
      weight: fc.integer({ min: 1, max: 5 }),
      fixedPart: fc.constantFrom(0, 0, 0.5, 1),
    }),
  });
}
