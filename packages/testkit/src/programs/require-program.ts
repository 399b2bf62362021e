import { findProgram } from './find-program.ts';
import { type Need, programsFor } from './needs.ts';
import type { Program } from './program.ts';

/** To be passed to `test`, `describe` or `suite` as its options. */
export type Requirement = { readonly skip?: string };

/**
 * Declares what a test needs: `describe('…', requireProgram('redis'), () => …)`. Skipped with the reason where it is missing;
 * under `WEIR_REQUIRE=all` a failure instead. `npm test` reads these calls, so the name is written out in the test file itself.
 */
export function requireProgram(...needs: readonly Need[]): Requirement {
  const missing = needs
    .flatMap(programsFor)
    .map(findProgram)
    .filter((program) => program.kind === 'missing');
  return leaveOut(missing.map(sentence));
}

/** The path of a program, for a fixture that is about to start it. */
export function programPath(name: Program['name']): string {
  const program = findProgram(name);
  if (program.kind === 'missing') throw new Error(sentence(program));
  return program.path;
}

export function leaveOut(reasons: readonly string[]): Requirement {
  if (reasons.length === 0) return {};
  if (process.env.WEIR_REQUIRE === 'all') throw new Error(`WEIR_REQUIRE=all, but ${reasons.join('; ')}`);
  return { skip: reasons.join('; ') };
}

export function sentence({ name, reason, remedy }: Extract<Program, { kind: 'missing' }>): string {
  return `${name} is missing (${reason}); to get it: ${remedy}`;
}
