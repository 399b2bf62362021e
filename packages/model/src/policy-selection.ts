import type { LabelRequirement, LabelSelector } from './policy.ts';
import type { NamespaceObject, TenantPolicyObject } from './snapshot.ts';

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

/** Whether an object with these labels is selected (metav1.LabelSelector: all parts must hold). */
export function matchesSelector(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(selector.matchLabels).every(([key, value]) => labelValue(labels, key) === value) &&
    selector.matchExpressions.every((requirement) => meetsRequirement(requirement, labels))
  );
}

/** Labels are written by tenants: a key such as `constructor` must not find what every object has. */
export function labelValue(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function meetsRequirement(requirement: LabelRequirement, labels: Readonly<Record<string, string>>): boolean {
  const value = labelValue(labels, requirement.key);
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && requirement.values.includes(value);
    case 'NotIn':
      return value === undefined || !requirement.values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
