import type { Suspension } from '@weir/model/data-plane';
import type { SuspensionAuditRecord } from './contract.ts';

const FORMAT_VERSION = 1;

/** Encodes a suspension as JSON with a format version. */
export function encodeSuspension(suspension: Suspension): string {
  return JSON.stringify({ v: FORMAT_VERSION, ...suspension });
}

/** Decodes a suspension. Returns undefined if the text is damaged or was written by a newer version. */
export function decodeSuspension(text: string): Suspension | undefined {
  try {
    const { v, ...suspension } = JSON.parse(text);
    return v === FORMAT_VERSION && isSuspension(suspension) ? suspension : undefined;
  } catch {
    return undefined;
  }
}

/** Reports whether a value has all fields of a suspension that the data path reads. */
export function isSuspension(value: unknown): value is Suspension {
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

/** Decodes the release of an audit record from JSON; '' stands for null. Returns undefined if a newer version wrote it. */
export function decodeRelease(text: string): SuspensionAuditRecord['release'] | undefined {
  if (text === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRelease(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reports whether a value is the release of an audit record that is not null. */
export function isRelease(value: unknown): value is NonNullable<SuspensionAuditRecord['release']> {
  const { why, by } = (value ?? {}) as Record<string, unknown>;
  return (why === 'resumed' || why === 'deleted' || why === 'expired') && (by === undefined || typeof by === 'string');
}
