// A process of its own: `followers-process.ts REDIS-URL FLEET`. Followers of the table, each with connections and a table of its own.
import type { RoutingTable } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { followTable, openRedisStore } from '@weir/store';
import { answer } from './calls.ts';
import { sameTime } from './same-time.ts';
import { digestOf } from './table-digest.ts';
import { watchWire } from './wire.ts';

export type FollowerCalls = {
  /** One after the other; returns how long each took to its first table. */
  join(count: number): Promise<readonly number[]>;
  /** When each has applied this revision or one after it; resolves when all have. Revisions are asked for in ascending order. */
  applied(revision: number): Promise<readonly number[]>;
  received(): number;
  /** Of one of them, and how many entries each has. */
  digest(): { readonly digest: string; readonly entries: readonly number[] };
};

/** Calls wait behind each other's tables: a process of many is later than a proxy of its own would be. */
const timeoutMs = 30_000;

type Applied = { readonly revision: number; readonly at: number };
type Follower = { table: RoutingTable; applied: Applied[] };

const [url = '', fleet = ''] = process.argv.slice(2);
const wire = watchWire();
const log = silentLogger();
const followers: Follower[] = [];
let look = (): void => undefined;

answer<FollowerCalls>({
  async join(count) {
    const times: number[] = [];
    for (let nth = 0; nth < count; nth++) times.push(await joinOne());
    return times;
  },
  applied(revision) {
    const { promise, resolve } = Promise.withResolvers<readonly number[]>();
    look = () => {
      const firsts = followers.map(({ applied }) => applied.find((each) => each.revision >= revision));
      if (firsts.some((first) => first === undefined)) return;
      look = () => undefined;
      for (const follower of followers) {
        follower.applied = follower.applied.filter(
          (each, index, all) => each.revision >= revision || index === all.length - 1,
        );
      }
      resolve(firsts.map((first) => first?.at ?? Number.NaN));
    };
    look();
    return promise;
  },
  received: () => wire().received,
  digest: () => ({
    digest: followers[0] === undefined ? '' : digestOf(followers[0].table),
    entries: followers.map(({ table }) => table.entries.size),
  }),
});

async function joinOne(): Promise<number> {
  const began = sameTime();
  const store = await openRedisStore({ url, fleet, log, timeoutMs });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let follower: Follower | undefined;
  followTable(store.table, {
    signal: new AbortController().signal,
    onTable(table, { revision }) {
      const at = sameTime();
      follower = { table, applied: [{ revision, at }] };
      followers.push(follower);
      resolve(at - began);
    },
    onChanges(_changes, table, { position: { revision } }) {
      if (follower === undefined) return;
      follower.table = table;
      follower.applied.push({ revision, at: sameTime() });
      look();
    },
  }).catch(reject);
  return promise;
}
