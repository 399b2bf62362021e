import { createHash } from 'node:crypto';
import { MANIFEST_KINDS, type ManifestKind } from './manifest-kinds.ts';

type Json = Readonly<Record<string, unknown>>;

/** Which object a manifest is, as far as it says. */
export interface ObjectIdentity {
  readonly kind: ManifestKind;
  readonly namespace?: string;
  readonly name: string;
}

/** Undefined when its name (or namespace) cannot be known. */
export function identityOf(kind: ManifestKind, raw: Json): ObjectIdentity | undefined {
  const metadata = isObject(raw.metadata) ? raw.metadata : {};
  const { name } = metadata;
  if (typeof name !== 'string' || name === '') return undefined;
  if (!MANIFEST_KINDS[kind].namespaced) return { kind, name };
  const namespace = metadata.namespace || 'default';
  return typeof namespace === 'string' ? { kind, namespace, name } : undefined;
}

/** The UID that the same object has in every directory, after every restart. */
export function uidFor({ kind, namespace, name }: ObjectIdentity): string {
  const hash = createHash('sha256')
    .update([kind, namespace ?? '', name].join('\0'))
    .digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join('-');
}

/**
 * The manifest as an API server would have stored it: with a UID, its namespace, the label that every namespace carries. What a dump
 * brought along from another cluster (times, a status that another load balancer wrote) says nothing here.
 */
export function withServerDefaults(identity: ObjectIdentity | undefined, raw: Json): Json {
  const metadata = isObject(raw.metadata) ? raw.metadata : undefined;
  if (identity === undefined || metadata === undefined) {
    return { ...raw, metadata: metadata === undefined ? raw.metadata : { ...metadata, uid: 'unknown' } };
  }
  const { creationTimestamp, deletionTimestamp, namespace, ...rest } = metadata;
  const applied = {
    ...rest,
    uid: uidFor(identity),
    ...(identity.namespace !== undefined && { namespace: identity.namespace }),
  };
  switch (identity.kind) {
    case 'Service':
      return { ...raw, metadata: applied, status: null };
    case 'Namespace': {
      const labels = isObject(rest.labels) ? { ...rest.labels, ...namespaceLabels(identity.name) } : rest.labels;
      return { ...raw, metadata: { ...applied, labels: labels ?? namespaceLabels(identity.name) } };
    }
    default:
      return { ...raw, metadata: applied };
  }
}

/** Selectors may count on it: the API server puts it on every namespace. */
export function namespaceLabels(name: string): Record<string, string> {
  return { 'kubernetes.io/metadata.name': name };
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
