// Workers come and go, their seats stay: 0 to N-1, so that metrics have as many series as there are workers, and counters
// that never go back.

import type { WorkerCounts } from './slab-sums.ts';
import type { Vitals } from './worker-vitals.ts';

export interface Seat {
  readonly index: number;
  /** The worker that sits there now; undefined: it is being replaced. */
  occupant: Occupant | undefined;
  /** Of those who sat there before. */
  connections: number;
  cpuSeconds: number;
  ends: number;
}

export interface Occupant {
  readonly id: number;
  readonly counts: WorkerCounts;
  readonly vitals: Vitals;
}

export interface SeatView extends WorkerCounts {
  readonly worker: number;
  /** How many workers of this seat have ended. */
  readonly ends: number;
  readonly cpuSeconds: number | null;
  readonly vitals: Vitals | null;
}

export class Seats {
  readonly #seats: Seat[];

  constructor(count: number) {
    this.#seats = Array.from({ length: count }, (_, index) => ({
      index,
      occupant: undefined,
      connections: 0,
      cpuSeconds: 0,
      ends: 0,
    }));
  }

  take(occupant: Occupant): void {
    const seat = this.#seats.find((each) => each.occupant === undefined);
    if (seat !== undefined) seat.occupant = occupant;
  }

  leave(id: number): void {
    const seat = this.#seats.find((each) => each.occupant?.id === id);
    if (seat?.occupant === undefined) return;
    const { counts, vitals } = seat.occupant;
    seat.connections += counts.connections;
    seat.cpuSeconds += vitals.cpuSeconds ?? 0;
    seat.ends += 1;
    seat.occupant = undefined;
  }

  /** The worker at this seat now. */
  at(index: number): number | undefined {
    return this.#seats[index]?.occupant?.id;
  }

  view(): SeatView[] {
    return this.#seats.map(({ index, occupant, connections, cpuSeconds, ends }) => {
      const { counts, vitals } = occupant ?? {};
      const tellsCpu = vitals?.cpuSeconds !== undefined || cpuSeconds > 0;
      return {
        worker: index,
        ends,
        connections: connections + (counts?.connections ?? 0),
        active: counts?.active ?? 0,
        cpuSeconds: tellsCpu ? cpuSeconds + (vitals?.cpuSeconds ?? 0) : null,
        vitals: vitals ?? null,
      };
    });
  }
}
