import type { Clock } from '@weir/runtime';
import type { Timed } from '../facts.ts';

export async function withTimes<T>(clock: Clock, ask: () => Promise<T>): Promise<Timed<T>> {
  const askedAt = clock.now();
  const answer = await ask();
  return { ...answer, askedAt, answeredAt: clock.now() };
}
