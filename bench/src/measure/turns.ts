/**
 * Who runs when: each round everybody once, and each round another one first, so that what drifts during a run (clock
 * frequency, neighbours, sockets in TIME_WAIT) meets all alike.
 */
export function turnsFor<T>(subjects: readonly T[], rounds: number): T[][] {
  return Array.from({ length: rounds }, (_, round) =>
    subjects.map((_, index) => subjects[(index + round) % subjects.length] as T),
  );
}
