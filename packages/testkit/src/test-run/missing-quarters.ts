import { missingSandboxMessage, sandboxSupport } from '../namespace/find-machine.ts';
import { missingNamespaceMessage, namespaceSupport } from '../namespace/find-namespace.ts';
import type { Isolation, TestFileRequirements } from './needs-of.ts';

/** Of the quarters that test files want, those that cannot be had here, each with the line that says why. */
export function unavailableIsolation(needs: readonly TestFileRequirements[]): ReadonlyMap<Isolation, string> {
  const wanted = new Set(needs.map(({ isolation }) => isolation));
  const missing = new Map<Isolation, string>();
  const namespace = wanted.has('namespace') ? namespaceSupport() : undefined;
  if (namespace?.kind === 'missing') missing.set('namespace', missingNamespaceMessage(namespace));
  const machine = wanted.has('machine') ? sandboxSupport() : undefined;
  if (machine?.kind === 'missing') missing.set('machine', missingSandboxMessage(machine));
  return missing;
}
