const LOOKS = 8;

/**
 * Which flow of a full crowd is to make room: the one silent for longest among the first few; those looked at in vain go to
 * the back. That is the clock algorithm (F. Corbató, 1968) with a short hand: nearly the longest silent of all, in constant
 * time, so that whoever forges client addresses cannot make it dear.
 */
export function nextToGo<K, F extends { readonly seenAt: number }>(crowd: Map<K, F>): F | undefined {
  const looked: [K, F][] = [];
  for (const entry of crowd) {
    if (looked.push(entry) === LOOKS) break;
  }
  let chosen: F | undefined;
  for (const [, flow] of looked) if (chosen === undefined || flow.seenAt < chosen.seenAt) chosen = flow;
  for (const [key, flow] of looked) {
    if (flow === chosen) continue;
    crowd.delete(key);
    crowd.set(key, flow);
  }
  return chosen;
}
