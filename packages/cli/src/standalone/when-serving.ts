import { entriesOf } from '@weir/model';
import { systemClock, wait } from '@weir/runtime';
import type { Store } from '@weir/store';

const SERVING_POLL_INTERVAL_MS = 20;
/** Then it is ready with what it has: a node whose address is not here never answers. */
const MAX_SERVING_WAIT_MS = 5_000;

/** Resolves once every node's proxy has the table and has said of each of its listeners whether it could be bound. */
export async function waitUntilServing(store: Store, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonic() + MAX_SERVING_WAIT_MS;
  while (!signal.aborted && systemClock.monotonic() < until) {
    if (await areAllListenersReported(store)) return;
    await wait(systemClock, SERVING_POLL_INTERVAL_MS, signal).catch(() => {});
  }
}

async function areAllListenersReported(store: Store): Promise<boolean> {
  const [copy, heartbeats] = await Promise.all([store.table.read(), store.heartbeats.list()]);
  if (copy === undefined) return false;
  const byNode = new Map(heartbeats.map((heartbeat) => [heartbeat.node, heartbeat]));
  const listeners = Map.groupBy(entriesOf(copy.table, 'listener'), (listener) => listener.node);
  return entriesOf(copy.table, 'node').every(({ name }) => {
    const heartbeat = byNode.get(name);
    if (heartbeat?.applied?.id !== copy.position.id) return false;
    const answered = new Set(
      heartbeat.listeners.filter((report) => report.bound || report.error !== null).map((report) => report.id),
    );
    return (listeners.get(name) ?? []).every((listener) => answered.has(listener.id));
  });
}
