import type { LabelRequirement, LabelSelector } from './policy.ts';
import type { NamespaceObject, TenantPolicyObject } from './snapshot.ts';

/** Orders policies by precedence: the highest priority first, then by name. */
export function comparePolicies(a: TenantPolicyObject, b: TenantPolicyObject): number {
  return b.spec.priority - a.spec.priority || (a.name < b.name ? -1 : 1);
}

/** Returns the policies whose selector matches a namespace, in the given order. */
export function policiesSelecting<T extends { readonly policy: TenantPolicyObject }>(
  namespace: NamespaceObject,
  candidates: readonly T[],
): T[] {
  const labels = { ...namespace.labels, 'kubernetes.io/metadata.name': namespace.name };
  return candidates.filter(({ policy }) => matchesSelector(policy.spec.namespaceSelector, labels));
}

/** Whether a selector selects an object with these labels: all parts of the selector must match. */
export function matchesSelector(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(selector.matchLabels).every(([key, value]) => labelValue(labels, key) === value) &&
    selector.matchExpressions.every((requirement) => meetsRequirement(requirement, labels))
  );
}

/**
 * Returns the value of a label. Reads own properties only, because tenants choose the keys: the key `constructor` must not find the
 * property that every object inherits.
 */
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
