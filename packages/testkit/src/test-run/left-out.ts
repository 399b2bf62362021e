import type { ProgramLookup } from '../programs/program.ts';
import { missingProgramMessage } from '../programs/require-program.ts';

/** One line for each thing that is wanted and cannot be had: what, why, and the line that gets it. */
export function skipReasons(wanted: { programs: readonly ProgramLookup[]; quarters: readonly string[] }): string[] {
  return [
    ...wanted.programs.filter((program) => program.kind === 'missing').map(missingProgramMessage),
    ...wanted.quarters,
  ];
}
