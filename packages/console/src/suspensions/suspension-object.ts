import { createHash } from 'node:crypto';
import type { Suspension, SuspensionTarget } from '@weir/model';
import type { SuspensionRequest } from './suspension-writer.ts';

export const SUSPENSION_RESOURCE = { group: 'weir.dev', version: 'v1alpha1', plural: 'suspensions' } as const;

/** A target as the Suspension object and the API write it. */
export interface TargetJson {
  readonly type: 'Tenant' | 'Namespace' | 'Service';
  readonly tenant?: string;
  readonly namespace?: string;
  readonly service?: string;
}

export function targetToJson(target: SuspensionTarget): TargetJson {
  switch (target.kind) {
    case 'tenant':
      return { type: 'Tenant', tenant: target.tenant };
    case 'namespace':
      return { type: 'Namespace', namespace: target.namespace };
    case 'service':
      return { type: 'Service', namespace: target.namespace, service: target.service };
  }
}

/** Who asked the console for it: the API server itself only knows the console. */
const MADE_BY_ANNOTATION = 'weir.dev/made-by';
const FIELD_MANAGER = 'weir-console';
/** What the API server takes of the name of a field manager. */
const MAX_FIELD_MANAGER_LENGTH = 128;

/** In whose name the object is applied. */
export function suspensionFieldManagerFor(by: string | null): string {
  if (by === null) return FIELD_MANAGER;
  const name = `${FIELD_MANAGER}:${by}`;
  if (name.length <= MAX_FIELD_MANAGER_LENGTH && /^[\x20-\x7e]+$/.test(name)) return name;
  return `${FIELD_MANAGER}:sha256:${createHash('sha256').update(by).digest('hex')}`;
}

/** When an object ends; null: it does not by itself. */
export function untilOfObject({ spec }: { readonly spec?: { readonly until?: string } }): number | null {
  return spec?.until === undefined ? null : Date.parse(spec.until);
}

/** The object to apply for a request. */
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

/** The cut-off of an object that the API server has taken. */
export function cutoffForObject(
  object: { readonly metadata: { readonly uid: string; readonly name: string; readonly creationTimestamp?: string } },
  { target, message, until }: SuspensionRequest,
): Suspension {
  const { uid, name, creationTimestamp } = object.metadata;
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
  };
}

/** The longest name of an object of Kubernetes (RFC 1123 subdomain). */
const MAX_NAME_LENGTH = 253;

/**
 * The same name for the same target, so that suspending twice is one Suspension. Tenants may be named by a label value, which
 * allows what an object's name does not; then a hash keeps two of them apart.
 */
export function suspensionNameFor(target: SuspensionTarget): string {
  const wanted = namePartsFor(target).join('.');
  const allowed = wanted
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .replace(/[.-]+$/, '');
  if (allowed === wanted && allowed.length <= MAX_NAME_LENGTH && !/\.[.-]|-\./.test(allowed)) return allowed;
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, 10);
  const plain = allowed.replace(/[.-]+/g, '-').slice(0, MAX_NAME_LENGTH - hash.length - 1);
  return `${plain}-${hash}`;
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
