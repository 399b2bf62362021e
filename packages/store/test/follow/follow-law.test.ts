import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apply, type Position, type RoutingTable } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import fc from 'fast-check';
import type { Revision } from '../../src/contract.ts';
import { followTable } from '../../src/follow/follow-table.ts';
import { breakChain, type ChainStep, chainFrom, takeCopy, takeRevision } from '../../src/follow/table-chain.ts';
import { createMemoryStore } from '../../src/memory/memory-store.ts';
import { TablePublisher } from '../../src/publish/table-publisher.ts';
import { contentOf } from '../contract/sample.ts';
import { isWhole, wholeTable } from '../contract/whole-table.ts';

describe('the law of following', () => {
  test('the chain never makes a table that is not whole, whatever is dropped, repeated or out of order', () => {
    fc.assert(
      fc.property(history(), fc.array(delivery(), { maxLength: 60 }), ({ revisions, tables }, deliveries) => {
        let chain = chainFrom(undefined);
        let table: RoutingTable | undefined;
        const take = (step: ChainStep): void => {
          chain = step.chain;
          if (step.delivery === undefined) return;
          if (step.delivery.kind === 'changes') {
            assert.ok(table !== undefined);
            assert.deepEqual(contentOf(apply(table, step.delivery.changes)), contentOf(step.delivery.table));
          }
          table = step.delivery.table;
          assert.deepEqual(contentOf(table), contentOf(tables.get(step.delivery.position.id)));
        };
        for (const { kind, at } of deliveries) {
          const revision = revisions[at % revisions.length];
          assert.ok(revision !== undefined);
          if (kind === 'gap') chain = breakChain(chain);
          else if (kind === 'copy') {
            const copied = tables.get(revision.position.id);
            if (copied !== undefined)
              take(takeCopy(chain, { table: copied, position: revision.position, unreadable: [] }));
          } else if (chain.link !== undefined) {
            // `next` is what a store in good order would give; `any` is whatever came
            const next = revisions.find(({ predecessor }) => predecessor === chain.link?.position.id);
            const given = kind === 'next' ? next : revision;
            if (given !== undefined) take(takeRevision(chain, given));
          }
        }
      }),
    );
  });

  test('a follower ends at the published table through any wipes, roll backs, outages and changes of leader', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event(), { maxLength: 40 }), async (events) => {
        const clock = new ManualClock();
        const store = createMemoryStore({ clock, keptRevisions: 5 });
        const stopped = new AbortController();
        let table: RoutingTable | undefined;
        let position: Position | undefined;
        const following = followTable(store.table, {
          signal: stopped.signal,
          clock,
          onTable(whole, at) {
            assert.equal(table, undefined);
            assert.ok(isWhole(whole));
            [table, position] = [whole, at];
          },
          onChanges(changes, whole, at) {
            assert.ok(table !== undefined && isWhole(whole));
            assert.deepEqual(contentOf(apply(table, changes)), contentOf(whole));
            [table, position] = [whole, at];
          },
        });

        const leaders = [0, 1].map(() => new TablePublisher({ store: store.table, maxChangesPerRevision: 3 }));
        let leading = 0;
        let rollBack = store.faults.checkpoint();
        let version = 0;
        const publisher = (): TablePublisher => leaders[leading] ?? assert.fail('there are two');
        const publish = async (): Promise<void> => {
          if (publisher().leads === false) await publisher().lead();
          const outcome = await publisher().publish(wholeTable(version));
          if (outcome.kind === 'not-leader') await publish();
        };
        for (const each of events) {
          if (each === 'publish') version += 1;
          if (each === 'publish' || each === 'again') await publish().catch(ignoreAway);
          if (each === 'half') {
            // the leader is lost between the parts of a change
            version += 1;
            const publishing = publish().catch(ignoreAway);
            store.faults.goAway();
            await publishing;
            store.faults.comeBack();
          }
          if (each === 'other-leader') leading = 1 - leading;
          if (each === 'wipe') store.faults.wipe();
          if (each === 'checkpoint') rollBack = store.faults.checkpoint();
          if (each === 'roll-back') rollBack();
          if (each === 'away') store.faults.goAway();
          if (each === 'back') store.faults.comeBack();
          if (each === 'ready') publisher().recheck();
          if (each === 'time') await clock.advance(700);
        }
        store.faults.comeBack();
        publisher().recheck();
        await publish();
        await clock.advance(10_000);
        assert.deepEqual(contentOf(table), contentOf(wholeTable(version)));
        assert.deepEqual(position, publisher().published?.position);
        stopped.abort();
        await following;
        assert.equal(clock.timers, 0);
      }),
      { numRuns: 200 },
    );
  });
});

function ignoreAway(error: unknown): void {
  assert.ok(error instanceof Error && 'code' in error && error.code === 'AWAY', String(error));
}

function event() {
  return fc.constantFrom(
    'publish',
    'publish',
    'again',
    'half',
    'other-leader',
    'wipe',
    'checkpoint',
    'roll-back',
    'away',
    'back',
    'ready',
    'time',
    'time',
  );
}

function delivery() {
  return fc.record({ kind: fc.constantFrom('next', 'next', 'any', 'copy', 'gap'), at: fc.nat(100) });
}

/** A tree of revisions, as several leaders and roll backs make it, and the whole tables by the id of their position. */
function history() {
  return fc
    .array(fc.record({ on: fc.nat(100), complete: fc.boolean() }), { minLength: 1, maxLength: 20 })
    .map((steps) => {
      const root = { epoch: 1, revision: 0, id: 'r0' };
      const revisions: Revision[] = [];
      const tables = new Map<string, RoutingTable>();
      const contents = new Map<string, RoutingTable>([['r0', { entries: new Map() }]]);
      for (const [index, { on, complete }] of steps.entries()) {
        const below =
          on % 4 === 0 ? (revisions[on % (index || 1)]?.position ?? root) : (revisions.at(-1)?.position ?? root);
        const position = { epoch: 1, revision: below.revision + 1, id: `r${index + 1}` };
        const changes = changesOf(index);
        const table = apply(contents.get(below.id) ?? assert.fail('below comes first'), changes);
        contents.set(position.id, table);
        if (complete) tables.set(position.id, table);
        revisions.push({ position, predecessor: below.id, complete, changes, unreadable: [] });
      }
      return { revisions, tables };
    });
}

function changesOf(version: number) {
  return [...wholeTable(version).entries.values()].slice(version % 3).map((entry) => ({ kind: 'put', entry }) as const);
}
