// What a reader of a store in Redis is told.
import type { TestContext } from 'node:test';
import type { RoutingTable } from '@weir/model';
import type { Revision, Store } from '../../src/contract.ts';
import { followTable } from '../../src/follow/follow-table.ts';

export async function readRevisionsAfter(
  t: TestContext,
  store: Store,
  position: Revision['position'],
  count: number,
): Promise<Revision[]> {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const found: Revision[] = [];
  for await (const revision of store.table.revisions({ after: position, signal: stopped.signal })) {
    if (found.push(revision) === count) break;
  }
  return found;
}

export interface FollowedTable {
  table: RoutingTable | undefined;
  epoch: number | undefined;
  unreadable: string[];
}

export function startFollowing(t: TestContext, store: Store): FollowedTable {
  const stopped = new AbortController();
  const told: FollowedTable = { table: undefined, epoch: undefined, unreadable: [] };
  const following = followTable(store.table, {
    signal: stopped.signal,
    onTable: (table, { epoch }) => Object.assign(told, { table, epoch }),
    onChanges: (_changes, table, { position: { epoch } }) => Object.assign(told, { table, epoch }),
    onUnreadable: (ids) => {
      told.unreadable = [...ids];
    },
  });
  t.after(async () => {
    stopped.abort();
    await following;
  });
  return told;
}
