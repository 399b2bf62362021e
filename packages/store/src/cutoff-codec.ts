import type { Cutoff } from '@weir/model/data-plane';

const VERSION = 1;

export function encodeCutoff(cutoff: Cutoff): string {
  return JSON.stringify({ v: VERSION, ...cutoff });
}

/** Undefined: damaged, or written by a newer version. */
export function decodeCutoff(text: string): Cutoff | undefined {
  try {
    const { v, ...cutoff } = JSON.parse(text);
    return v === VERSION && isCutoff(cutoff) ? cutoff : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a value has what `cutoffFor` relies on. */
export function isCutoff(value: unknown): value is Cutoff {
  if (typeof value !== 'object' || value === null) return false;
  const { uid, name, message, until, target, origin } = value as Record<string, unknown>;
  return (
    [uid, name, message].every((text) => typeof text === 'string') &&
    (until === null || typeof until === 'number') &&
    isTarget(target) &&
    kindOf(origin) !== undefined
  );
}

function isTarget(target: unknown): boolean {
  const { tenant, namespace, service } = (target ?? {}) as Record<string, unknown>;
  switch (kindOf(target)) {
    case 'tenant':
      return typeof tenant === 'string';
    case 'namespace':
      return typeof namespace === 'string';
    case 'service':
      return typeof namespace === 'string' && typeof service === 'string';
    default:
      return false;
  }
}

function kindOf(value: unknown): string | undefined {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined;
  return typeof kind === 'string' ? kind : undefined;
}
