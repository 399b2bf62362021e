import type { NamespaceObject, TenantPolicyObject } from './snapshot.ts';
import { matchesSelector } from './translate/label-selector.ts';

/** Sorts policies: the one that is asked first is first, by priority, then by name. */
export function comparePolicies(a: TenantPolicyObject, b: TenantPolicyObject): number {
  return b.spec.priority - a.spec.priority || (a.name < b.name ? -1 : 1);
}

/** The policies whose selector matches a namespace, in their order. */
export function policiesSelecting<T extends { readonly policy: TenantPolicyObject }>(
  namespace: NamespaceObject,
  from: readonly T[],
): T[] {
  const labels = { ...namespace.labels, 'kubernetes.io/metadata.name': namespace.name };
  return from.filter(({ policy }) => matchesSelector(policy.spec.namespaceSelector, labels));
}
