import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apply, type RoutingTable } from '@weir/model';
import fc from 'fast-check';
import type { Revision } from '../../src/contract.ts';
import {
  applyRevision,
  applySnapshot,
  type FollowerStep,
  initialState,
  requireSnapshot,
} from '../../src/follow/follow-table.ts';
import { completeTable } from '../contract/complete-table.ts';
import { contentOf } from '../contract/sample-data.ts';

describe('follower state', () => {
  test('never yields an incomplete table, whatever revisions are dropped, repeated or reordered', () => {
    fc.assert(
      fc.property(
        history(),
        fc.array(delivery(), { maxLength: 60, size: 'max' }),
        ({ revisions, tables }, deliveries) => {
          let state = initialState(undefined);
          let table: RoutingTable | undefined;
          const applyStep = (step: FollowerStep): void => {
            state = step.state;
            if (step.update === undefined) return;
            if (step.update.kind === 'changes') {
              assert.ok(table !== undefined);
              assert.deepEqual(contentOf(apply(table, step.update.changes)), contentOf(step.update.table));
            }
            table = step.update.table;
            assert.deepEqual(contentOf(table), contentOf(tables.get(step.update.position.id)));
          };
          for (const { kind, at } of deliveries) {
            const revision = revisions[at % revisions.length];
            assert.ok(revision !== undefined);
            if (kind === 'gap') state = requireSnapshot(state);
            else if (kind === 'copy') {
              const copied = tables.get(revision.position.id);
              if (copied !== undefined)
                applyStep(applySnapshot(state, { table: copied, position: revision.position, unreadable: [] }));
            } else if (state.cursor !== undefined) {
              // `next` delivers the revision that follows the cursor; `any` delivers an arbitrary revision.
              const next = revisions.find(({ predecessor }) => predecessor === state.cursor?.position.id);
              const given = kind === 'next' ? next : revision;
              if (given !== undefined) applyStep(applyRevision(state, given));
            }
          }
        },
      ),
    );
  });
});

function delivery() {
  return fc.record({ kind: fc.constantFrom('next', 'next', 'any', 'copy', 'gap'), at: fc.nat(100) });
}

/**
 * Returns a generator of a tree of revisions, as several leaders and rollbacks create it, and the complete tables by the id of their
 * position.
 */
function history() {
  return fc
    .array(fc.record({ on: fc.nat(100), complete: fc.boolean() }), { minLength: 1, maxLength: 20, size: 'max' })
    .map((steps) => {
      const root = { epoch: 1, revision: 0, id: 'r0' };
      const revisions: Revision[] = [];
      const tables = new Map<string, RoutingTable>();
      const contents = new Map<string, RoutingTable>([['r0', { entries: new Map() }]]);
      for (const [index, { on, complete }] of steps.entries()) {
        const previous =
          on % 4 === 0 ? (revisions[on % (index || 1)]?.position ?? root) : (revisions.at(-1)?.position ?? root);
        const position = { epoch: 1, revision: previous.revision + 1, id: `r${index + 1}` };
        const changes = changesOf(index);
        const table = apply(contents.get(previous.id) ?? assert.fail('no content of the predecessor'), changes);
        contents.set(position.id, table);
        if (complete) tables.set(position.id, table);
        revisions.push({ position, predecessor: previous.id, complete, changes, unreadable: [] });
      }
      return { revisions, tables };
    });
}

function changesOf(version: number) {
  return [...completeTable(version).entries.values()]
    .slice(version % 3)
    .map((entry) => ({ kind: 'put', entry }) as const);
}
