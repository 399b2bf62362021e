import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apply, type RoutingTable, type TablePosition } from '@weir/model';
import type { Clock } from '@weir/runtime';
import fc from 'fast-check';
import type { Store } from '../../src/contract.ts';
import { followTable } from '../../src/follow/follow-table.ts';
import { isSamePosition } from '../../src/position.ts';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { completeTable, isComplete } from './complete-table.ts';
import { contentOf } from './sample-data.ts';
import type { StoreFixture, StoreUnderTest } from './store-fixture.ts';

/**
 * Checks that a follower reaches the published table after wipes, rollbacks, outages and leader changes, and reports only complete tables.
 */
export function followProperties(subject: StoreUnderTest, { numRuns }: { readonly numRuns: number }): void {
  describe(`properties of following ${subject.name}`, () => {
    test('a follower reaches the published table and never reports an incomplete table', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(event(), { maxLength: 50, size: 'max' }), async (events) => {
          await using world = await subject.open({ keptRevisions: 5 });
          const follower = follow(await world.connect(), world.clock);
          const fleet = await startLeaders(world);
          for (const each of events) await fleet.happen(each, follower);
          await fleet.settle(follower);
          await follower.stop();
        }),
        { numRuns },
      );
    });
  });
}

interface Follower {
  readonly table: RoutingTable | undefined;
  readonly position: TablePosition | undefined;
  stop(): Promise<void>;
}

function follow(store: Store, clock: Clock): Follower {
  const stopped = new AbortController();
  let table: RoutingTable | undefined;
  let position: TablePosition | undefined;
  const following = followTable(store.table, {
    signal: stopped.signal,
    clock,
    onTable(next, nextPosition) {
      assert.equal(table, undefined);
      assert.ok(isComplete(next));
      [table, position] = [next, nextPosition];
    },
    onChanges(changes, next, { position: nextPosition }) {
      assert.ok(table !== undefined && isComplete(next));
      assert.deepEqual(contentOf(apply(table, changes)), contentOf(next));
      [table, position] = [next, nextPosition];
    },
  });
  return {
    get table() {
      return table;
    },
    get position() {
      return position;
    },
    async stop() {
      stopped.abort();
      await following;
    },
  };
}

type Event = ReturnType<typeof event> extends fc.Arbitrary<infer E> ? E : never;

async function startLeaders(world: StoreFixture) {
  const leaders = [await world.connect(), await world.connect()].map(
    ({ table }) => new TablePublisher({ store: table, maxChangesPerRevision: 3 }),
  );
  let leading = 0;
  let version = 0;
  let isUp = true;
  let rollBack = await world.checkpoint();

  const publisher = (): TablePublisher => leaders[leading] ?? assert.fail('no such leader');
  const publish = async (): Promise<void> => {
    if (!publisher().isLeader) await publisher().becomeLeader();
    const outcome = await publisher().publish(completeTable(version));
    if (outcome.kind === 'not-leader') await publish();
  };
  const up = async (): Promise<void> => {
    if (!isUp) await world.comeBack();
    isUp = true;
  };
  const down = async (): Promise<void> => {
    if (isUp) await world.goAway();
    isUp = false;
  };

  async function happen(each: Event, follower: Follower): Promise<void> {
    switch (each) {
      case 'publish':
        version += 1;
        return publish().catch(ignoreAway);
      case 'again':
        return publish().catch(ignoreAway);
      case 'half': {
        // The store becomes unreachable between two revisions of one change.
        version += 1;
        const publishing = publish().catch(ignoreAway);
        await down();
        await publishing;
        return up();
      }
      case 'other leader':
        leading = 1 - leading;
        return;
      case 'away':
        return down();
      case 'back':
        return up();
      case 'ready':
        return publisher().recheck();
      case 'wipe':
        await up();
        return world.wipe();
      case 'checkpoint':
        await up();
        rollBack = await world.checkpoint();
        return;
      case 'roll back':
        await up();
        return rollBack();
      case 'time':
        return world.eventually(700, async () => undefined);
      case 'catch up':
        await up();
        publisher().recheck();
        await world.eventually(5_000, publish);
        return world.eventually(5_000, async () =>
          assert.ok(isSamePosition(follower.position, publisher().published?.position)),
        );
    }
  }

  async function settle(follower: Follower): Promise<void> {
    await up();
    publisher().recheck();
    await world.eventually(5_000, publish);
    await world.eventually(5_000, async () => {
      assert.deepEqual(contentOf(follower.table), contentOf(completeTable(version)));
      assert.deepEqual(follower.position, publisher().published?.position);
    });
  }

  return { happen, settle };
}

function ignoreAway(error: unknown): void {
  assert.ok(error instanceof Error && 'code' in error && error.code === 'AWAY', String(error));
}

function event() {
  return fc.constantFrom(
    'publish',
    'publish',
    'publish',
    'again',
    'half',
    'other leader',
    'wipe',
    'checkpoint',
    'roll back',
    'away',
    'back',
    'ready',
    'time',
    'catch up',
  );
}
