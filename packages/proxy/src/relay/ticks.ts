export const TICK_MS = 1_000;

/** Ticks of the wheel that are surely not shorter: one more than the whole ones, because the present one has begun already. */
export function ticksFor(ms: number): number {
  return Math.ceil(ms / TICK_MS) + 1;
}
