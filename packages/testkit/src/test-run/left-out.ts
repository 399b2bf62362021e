import type { Program } from '../programs/program.ts';
import { sentence } from '../programs/require-program.ts';

/** One line for each thing that is wanted and cannot be had: what, why, and the line that gets it. */
export function leftOut(wanted: { programs: readonly Program[]; quarters: readonly string[] }): string[] {
  return [...wanted.programs.filter((program) => program.kind === 'missing').map(sentence), ...wanted.quarters];
}
