import type { Heartbeat } from '@weir/model/data-plane';

export function compareHeartbeats(a: Heartbeat, b: Heartbeat): number {
  if (a.node !== b.node) return a.node < b.node ? -1 : 1;
  return a.life - b.life;
}
