import { createHash } from 'node:crypto';
import type { SuspensionTarget } from '@weir/model';
import { authorOf, MADE_BY_ANNOTATION, madeByOf, type Suspension } from '@weir/model/data-plane';
import { targetToJson } from './suspension-item.ts';
import type { SuspensionRequest } from './suspension-writer.ts';

export const SUSPENSION_RESOURCE = { group: 'weir.dev', version: 'v1alpha1', plural: 'suspensions' } as const;

/** The fields of a Suspension object that the console reads. */
export interface SuspensionManifest {
  readonly metadata: {
    readonly uid: string;
    readonly name: string;
    readonly creationTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly until?: string; readonly rule?: string };
}

const FIELD_MANAGER = 'weir-console';
/** The API server's limit for the name of a field manager. */
const MAX_FIELD_MANAGER_LENGTH = 128;

/**
 * Returns the field manager of a user. Each user has a different field manager, so that the API server reports conflicts between two users.
 */
export function suspensionFieldManagerFor(user: string | null): string {
  if (user === null) return FIELD_MANAGER;
  const name = `${FIELD_MANAGER}:${user}`;
  if (name.length <= MAX_FIELD_MANAGER_LENGTH && /^[\x20-\x7e]+$/.test(name)) return name;
  return `${FIELD_MANAGER}:sha256:${createHash('sha256').update(user).digest('hex')}`;
}

/** Returns the end of a Suspension object in milliseconds since the epoch, or null if the object has no end. */
export function untilOfObject({ spec }: Pick<SuspensionManifest, 'spec'>): number | null {
  return spec?.until === undefined ? null : Date.parse(spec.until);
}

/** Returns the Suspension object to apply for a request. */
export function suspensionObjectFor(name: string, { target, message, until, requestedBy }: SuspensionRequest): object {
  return {
    apiVersion: `${SUSPENSION_RESOURCE.group}/${SUSPENSION_RESOURCE.version}`,
    kind: 'Suspension',
    metadata: { name, ...(requestedBy === null ? {} : { annotations: { [MADE_BY_ANNOTATION]: requestedBy } }) },
    spec: {
      target: targetToJson(target),
      message,
      ...(until === null ? {} : { until: new Date(until).toISOString() }),
    },
  };
}

/** Returns the store's entry for an object that the API server accepted. */
export function suspensionForObject(
  object: SuspensionManifest,
  { target, message, until }: SuspensionRequest,
): Suspension {
  const { uid, name, creationTimestamp, annotations = {} } = object.metadata;
  const createdAt = creationTimestamp === undefined ? Number.NaN : Date.parse(creationTimestamp);
  return {
    uid,
    name,
    target,
    message,
    until,
    reason: 'SuspendedByOperator',
    origin: { kind: 'kubernetes' },
    createdAt: Number.isNaN(createdAt) ? null : createdAt,
    // The same text as the controller's, so that the controller need not write the entry again.
    ...authorOf({ madeBy: madeByOf(annotations[MADE_BY_ANNOTATION], FIELD_MANAGER), rule: object.spec?.rule ?? null }),
  };
}

/** The maximum length of names of Kubernetes objects (RFC 1123 subdomains). */
const MAX_NAME_LENGTH = 253;

/**
 * Returns the name of the Suspension for a target. The name depends only on the target, so that a repeated request changes the same
 * Suspension. Names of tenants may contain characters that object names must not contain. Such names get a hash, so that similar names stay
 * distinct.
 */
export function suspensionNameFor(target: SuspensionTarget): string {
  const fullName = namePartsFor(target).join('.');
  const sanitized = fullName
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .replace(/[.-]+$/, '');
  if (sanitized === fullName && sanitized.length <= MAX_NAME_LENGTH && !/\.[.-]|-\./.test(sanitized)) return sanitized;
  const hash = createHash('sha256').update(fullName).digest('hex').slice(0, 10);
  const prefix = sanitized.replace(/[.-]+/g, '-').slice(0, MAX_NAME_LENGTH - hash.length - 1);
  return `${prefix}-${hash}`;
}

function namePartsFor(target: SuspensionTarget): readonly string[] {
  switch (target.kind) {
    case 'tenant':
      return ['tenant', target.tenant];
    case 'namespace':
      return ['namespace', target.namespace];
    case 'service':
      return ['service', target.namespace, target.service];
  }
}
