import { EMPTY_TABLE, type TablePosition } from '@weir/model';
import { type Clock, type Logger, wait } from '@weir/runtime';
import { type Store, TablePublisher } from '@weir/store';

const HEARTBEAT_POLL_MS = 200;

/**
 * Publishes a table without anything in it, and waits until every proxy that beats has applied it: then none listens, and none finds on
 * its disk what it once served. Rejects when the store is away.
 */
export async function publishEmptyTable(
  store: Store,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  const outcome = await publisher.publish(EMPTY_TABLE);
  if (outcome.kind === 'not-leader') throw new Error('another controller has taken the lead meanwhile');
  for (;;) {
    const behind = await nodesBehind(store, outcome.position);
    if (behind.length === 0) return;
    log.info({ nodes: behind }, 'waiting for proxies to close their listeners');
    await wait(clock, HEARTBEAT_POLL_MS, signal);
  }
}

async function nodesBehind({ heartbeats }: Store, { id }: TablePosition): Promise<readonly string[]> {
  const beating = await heartbeats.list();
  return beating.filter(({ applied }) => applied?.id !== id).map(({ node }) => node);
}
