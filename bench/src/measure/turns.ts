/**
 * Who runs when: each round everybody once, and each round another one first, so that what drifts during a run (clock
 * frequency, neighbours, sockets in TIME_WAIT) meets all alike.
 */
export function rotatedOrders<T>(subjects: readonly T[], rounds: number): T[][] {
  return Array.from({ length: rounds }, (_, round) =>
    subjects.map((_, index) => subjects[(index + round) % subjects.length] as T),
  );
}

const ROUNDS_PER_START = 2;

/** How many rounds those play who are started together, one cast after the other. */
export function roundsPerStart(rounds: number): number[] {
  const casts = Math.ceil(rounds / ROUNDS_PER_START);
  return Array.from({ length: casts }, (_, cast) => Math.min(ROUNDS_PER_START, rounds - cast * ROUNDS_PER_START));
}
