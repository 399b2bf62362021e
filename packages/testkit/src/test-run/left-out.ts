import { type NamespaceAnswer, namespaceSentence } from '../namespace/find-namespace.ts';
import type { Program } from '../programs/program.ts';
import { sentence } from '../programs/require-program.ts';

/** One line for each thing that is wanted and cannot be had: what, why, and the line that gets it. */
export function leftOut(wanted: { programs: readonly Program[]; namespace: NamespaceAnswer | undefined }): string[] {
  const notes = wanted.programs.filter((program) => program.kind === 'missing').map(sentence);
  return wanted.namespace?.kind === 'missing' ? [...notes, namespaceSentence(wanted.namespace)] : notes;
}
