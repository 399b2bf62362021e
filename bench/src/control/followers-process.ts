// Program `followers-process.ts REDIS-URL FLEET`: several followers, each with a separate connection to Redis and a separate table.
import type { RoutingTable } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { followTable, openRedisStore } from '@weir/store';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { serveRpc } from '../processes/rpc.ts';
import { countSocketBytes } from './socket-bytes.ts';
import { tableDigest } from './table-digest.ts';

export type FollowerRpc = {
  /** Starts followers one after the other. Returns for each follower the milliseconds until the follower had its first table. */
  join(count: number): Promise<readonly number[]>;
  /**
   * Resolves when every follower has applied the revision or a later revision. Returns the time at which each follower did so.
   * Revisions must ascend from call to call.
   */
  applied(revision: number): Promise<readonly number[]>;
  received(): number;
  /** Returns the digest of the first follower's table, and the number of entries in each follower's table. */
  digest(): { readonly digest: string; readonly entries: readonly number[] };
};

/** Long, because all followers of this process decode tables on one thread and may therefore read a response late. */
const REDIS_TIMEOUT_MS = 30_000;

type AppliedRevision = { readonly revision: number; readonly at: number };
type Follower = { table: RoutingTable; applied: AppliedRevision[] };

const [url = '', fleet = ''] = process.argv.slice(2);
const socketBytes = countSocketBytes();
const log = silentLogger();
const followers: Follower[] = [];
let checkWaiter = (): void => undefined;

serveRpc<FollowerRpc>({
  async join(count) {
    const times: number[] = [];
    for (let started = 0; started < count; started++) times.push(await startFollower());
    return times;
  },
  applied(revision) {
    const { promise, resolve } = Promise.withResolvers<readonly number[]>();
    checkWaiter = () => {
      const appliedRevisions = followers.map(({ applied }) => applied.find((one) => one.revision >= revision));
      if (appliedRevisions.some((first) => first === undefined)) return;
      checkWaiter = () => undefined;
      for (const follower of followers) {
        follower.applied = follower.applied.filter(
          (each, index, all) => each.revision >= revision || index === all.length - 1,
        );
      }
      resolve(appliedRevisions.map((first) => first?.at ?? Number.NaN));
    };
    checkWaiter();
    return promise;
  },
  received: () => socketBytes().received,
  digest: () => ({
    digest: followers[0] === undefined ? '' : tableDigest(followers[0].table),
    entries: followers.map(({ table }) => table.entries.size),
  }),
});

async function startFollower(): Promise<number> {
  const startedAt = monotonicMs();
  const store = await openRedisStore({ url, fleet, log, timeoutMs: REDIS_TIMEOUT_MS });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let follower: Follower | undefined;
  followTable(store.table, {
    signal: new AbortController().signal,
    onTable(table, { revision }) {
      const at = monotonicMs();
      follower = { table, applied: [{ revision, at }] };
      followers.push(follower);
      resolve(at - startedAt);
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
