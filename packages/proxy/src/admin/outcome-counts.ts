import { outcomeColumn } from '../counters/columns.ts';
import { OUTCOMES, type Outcome } from '../counters/outcome.ts';

/** How the connections counted in a row ended; outcomes that never came are left out. */
export function outcomeCounts(total: Float64Array): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const outcome of OUTCOMES) {
    const count = total[outcomeColumn(outcome)] as number;
    if (count > 0) counts[outcome] = count;
  }
  return counts;
}
