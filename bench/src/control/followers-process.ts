// A process of its own: `followers-process.ts REDIS-URL FLEET`. Followers of the table, each with connections and a table of its own.
import type { RoutingTable } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { followTable, openRedisStore } from '@weir/store';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { serveRpc } from '../processes/rpc.ts';
import { countSocketBytes } from './socket-bytes.ts';
import { tableDigest } from './table-digest.ts';

export type FollowerRpc = {
  /** One after the other; returns how long each took to its first table. */
  join(count: number): Promise<readonly number[]>;
  /** When each has applied this revision or one after it; resolves when all have. Revisions are asked for in ascending order. */
  applied(revision: number): Promise<readonly number[]>;
  received(): number;
  /** Of one of them, and how many entries each has. */
  digest(): { readonly digest: string; readonly entries: readonly number[] };
};

/** Calls wait behind each other's tables: a process of many is later than a proxy of its own would be. */
const REDIS_TIMEOUT_MS = 30_000;

type AppliedRevision = { readonly revision: number; readonly at: number };
type Follower = { table: RoutingTable; applied: AppliedRevision[] };

const [url = '', fleet = ''] = process.argv.slice(2);
const wire = countSocketBytes();
const log = silentLogger();
const followers: Follower[] = [];
let checkWaiter = (): void => undefined;

serveRpc<FollowerRpc>({
  async join(count) {
    const times: number[] = [];
    for (let nth = 0; nth < count; nth++) times.push(await startFollower());
    return times;
  },
  applied(revision) {
    const { promise, resolve } = Promise.withResolvers<readonly number[]>();
    checkWaiter = () => {
      const firsts = followers.map(({ applied }) => applied.find((each) => each.revision >= revision));
      if (firsts.some((first) => first === undefined)) return;
      checkWaiter = () => undefined;
      for (const follower of followers) {
        follower.applied = follower.applied.filter(
          (each, index, all) => each.revision >= revision || index === all.length - 1,
        );
      }
      resolve(firsts.map((first) => first?.at ?? Number.NaN));
    };
    checkWaiter();
    return promise;
  },
  received: () => wire().received,
  digest: () => ({
    digest: followers[0] === undefined ? '' : tableDigest(followers[0].table),
    entries: followers.map(({ table }) => table.entries.size),
  }),
});

async function startFollower(): Promise<number> {
  const began = monotonicMs();
  const store = await openRedisStore({ url, fleet, log, timeoutMs: REDIS_TIMEOUT_MS });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let follower: Follower | undefined;
  followTable(store.table, {
    signal: new AbortController().signal,
    onTable(table, { revision }) {
      const at = monotonicMs();
      follower = { table, applied: [{ revision, at }] };
      followers.push(follower);
      resolve(at - began);
    },
    onChanges(_changes, table, { position: { revision } }) {
      if (follower === undefined) return;
      follower.table = table;
      follower.applied.push({ revision, at: monotonicMs() });
      checkWaiter();
    },
  }).catch(reject);
  return promise;
}
