import type { LabelRequirement, LabelSelector } from '../policy.ts';

/** Whether an object with these labels is selected (metav1.LabelSelector: all parts must hold). */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(selector.matchLabels).every(([key, value]) => labelOf(labels, key) === value) &&
    selector.matchExpressions.every((requirement) => holds(requirement, labels))
  );
}

/** Labels are written by tenants: a key such as `constructor` must not find what every object has. */
export function labelOf(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function holds(requirement: LabelRequirement, labels: Readonly<Record<string, string>>): boolean {
  const value = labelOf(labels, requirement.key);
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
