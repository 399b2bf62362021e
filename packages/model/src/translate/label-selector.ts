import type { LabelRequirement, LabelSelector } from '../policy.ts';

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
