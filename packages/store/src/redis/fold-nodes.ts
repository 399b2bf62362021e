// Forgets nodes that are gone, so that the ledger does not grow with each node that ever had a proxy.
import { GONE_NODE_TTL_MS, goneNodeFloor } from '../limits.ts';
import { runTransaction } from './connection/pipeline.ts';
import type { RedisCalls } from './connection/redis-connection.ts';
import type { Keys } from './keys.ts';
import { pagesOf } from './read-series.ts';

/** The number of nodes in one call of `forget-nodes.lua`. Bounds the time for which one call blocks Redis. */
const NODES_PER_CALL = 50;

export interface FoldGoneNodesOptions {
  readonly connection: Pick<RedisCalls, 'call' | 'run'>;
  readonly keys: Keys;
  readonly existing: ReadonlySet<string>;
  /** In milliseconds since the Unix epoch. */
  readonly now: number;
}

/** See `UsageStore.foldGoneNodes`. If a step fails, the next call continues. */
export async function foldGoneNodes({ connection, keys, existing, now }: FoldGoneNodesOptions): Promise<void> {
  const { usage, lives } = keys;
  const replies = await connection.call((redis) =>
    runTransaction(redis, (all) => all.smembers(usage.nodes).hkeys(usage.folded).hkeys(lives).hgetall(usage.goneNodes)),
  );
  const [nodes, folded, started, goneSince] = replies as [string[], string[], string[], Record<string, string>];
  const known = new Set([...nodes, ...folded, ...started]);
  known.delete('');
  const gone = [...known].filter((node) => !existing.has(node));
  const due = gone.filter((node) => now - Number(goneSince[node] ?? now) >= GONE_NODE_TTL_MS);
  const added = gone.filter((node) => goneSince[node] === undefined);
  const isGone = new Set(gone);
  const returned = Object.keys(goneSince).filter((node) => !isGone.has(node));
  if (added.length > 0 || returned.length > 0)
    await connection.call((redis) =>
      runTransaction(redis, (all) => {
        for (const node of added) all.hset(usage.goneNodes, node, now);
        for (const node of returned) all.hdel(usage.goneNodes, node);
        return all;
      }),
    );
  const shared = [usage.folded, usage.nodes, usage.reported, lives, usage.goneNodes];
  for (const page of pagesOf(due, NODES_PER_CALL))
    await connection.run('forget-nodes', [...shared, ...page.map(usage.bases)], [goneNodeFloor(now), ...page]);
}
