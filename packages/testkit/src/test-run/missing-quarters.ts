import { findMachine, machineSentence } from '../namespace/find-machine.ts';
import { findNamespace, namespaceSentence } from '../namespace/find-namespace.ts';
import type { Needs, Quarters } from './needs-of.ts';

/** Of the quarters that test files want, those that cannot be had here, each with the line that says why. */
export function missingQuarters(needs: readonly Needs[]): ReadonlyMap<Quarters, string> {
  const wanted = new Set(needs.map(({ quarters }) => quarters));
  const missing = new Map<Quarters, string>();
  const namespace = wanted.has('namespace') ? findNamespace() : undefined;
  if (namespace?.kind === 'missing') missing.set('namespace', namespaceSentence(namespace));
  const machine = wanted.has('machine') ? findMachine() : undefined;
  if (machine?.kind === 'missing') missing.set('machine', machineSentence(machine));
  return missing;
}
