import type { Cutoff, SuspensionTarget } from '@weir/model';
import type { SuspensionRequest } from './suspension-writer.ts';

export const SUSPENSIONS = { group: 'weir.dev', version: 'v1alpha1', plural: 'suspensions' } as const;

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
const MADE_BY = 'weir.dev/made-by';

/** The object to apply for a request. */
export function suspensionObjectFor(name: string, { target, message, until, by }: SuspensionRequest): object {
  return {
    apiVersion: `${SUSPENSIONS.group}/${SUSPENSIONS.version}`,
    kind: 'Suspension',
    metadata: { name, ...(by === null ? {} : { annotations: { [MADE_BY]: by } }) },
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
): Cutoff {
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
