import type { Heartbeat } from '@weir/model';
import type { FoldedIncarnation } from '@weir/store';

/**
 * Whoever serves a node so long has long brought home what earlier lives of it left in the state directory. Until then each
 * life keeps its bases, without which a repeated report would be billed twice.
 */
const MIN_SERVED_MS = 24 * 3_600_000;

/**
 * By node, the last life whose account can be closed with all before it: those below every life that is heard, once all that
 * are heard have served for a day, as far as they are understood. `now` in milliseconds since the epoch.
 */
export function foldableIncarnations(heartbeats: readonly Heartbeat[], now: number): FoldedIncarnation[] {
  const byNode = Map.groupBy(heartbeats, ({ node }) => node);
  return [...byNode].flatMap(([node, lives]) => {
    const isSettled = lives.every(
      ({ startedAt, unreadable }) => unreadable === undefined && now - startedAt >= MIN_SERVED_MS,
    );
    const life = Math.min(...lives.map((heartbeat) => heartbeat.life)) - 1;
    return isSettled && life > 0 ? [{ node, life }] : [];
  });
}
