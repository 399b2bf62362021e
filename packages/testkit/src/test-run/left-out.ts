import { findNamespace, namespaceSentence } from '../namespace/find-namespace.ts';
import type { Program } from '../programs/program.ts';
import { sentence } from '../programs/require-program.ts';

/** One line for each thing that is wanted and cannot be had: what, why, and the line that gets it. */
export function leftOut(wanted: { programs: readonly Program[]; namespace: boolean }): string[] {
  const notes = wanted.programs.filter((program) => program.kind === 'missing').map(sentence);
  const namespace = wanted.namespace ? findNamespace() : undefined;
  if (namespace?.kind === 'missing') {
    notes.push(namespaceSentence(namespace));
  }
  return notes;
}
