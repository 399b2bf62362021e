import { findProgram } from './find-program.ts';
import { type ProgramOrSet, programsFor } from './needs.ts';
import type { ProgramLookup } from './program.ts';

/** To be passed to `test`, `describe` or `suite` as its options. */
export type SkipOptions = { readonly skip?: string };

/**
 * Declares what a test needs: `describe('…', requireProgram('redis'), () => …)`. Skipped with the reason where it is missing;
 * under `WEIR_REQUIRE=all` a failure instead. `npm test` reads these calls, so the name is written out in the test file itself.
 */
export function requireProgram(...needs: readonly ProgramOrSet[]): SkipOptions {
  const missing = needs
    .flatMap(programsFor)
    .map(findProgram)
    .filter((program) => program.kind === 'missing');
  return skipFor(missing.map(missingProgramMessage));
}

/** The path of a program, for a fixture that is about to start it. */
export function programPath(name: ProgramLookup['name']): string {
  const program = findProgram(name);
  if (program.kind === 'missing') throw new Error(missingProgramMessage(program));
  return program.path;
}

export function skipFor(reasons: readonly string[]): SkipOptions {
  if (reasons.length === 0) return {};
  if (process.env.WEIR_REQUIRE === 'all') throw new Error(`WEIR_REQUIRE=all, but ${reasons.join('; ')}`);
  return { skip: reasons.join('; ') };
}

export function missingProgramMessage({ name, reason, remedy }: Extract<ProgramLookup, { kind: 'missing' }>): string {
  return `${name} is missing (${reason}); to get it: ${remedy}`;
}
