import { createHash } from 'node:crypto';
import type {
  NamespaceObject,
  NodeObject,
  SecretObject,
  ServiceObject,
  SliceObject,
  SuspensionObject,
  TenantPolicyObject,
} from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { parseNamespace, parseNode } from '../../parse/cluster-objects.ts';
import { parseEndpointSlice } from '../../parse/endpoint-slice.ts';
import type { ParseResult } from '../../parse/parse-object.ts';
import { parseSecret } from '../../parse/secret.ts';
import { parseService } from '../../parse/service.ts';
import { parseSuspension } from '../../parse/suspension.ts';
import { parseTenantPolicy } from '../../parse/tenant-policy.ts';

/** The objects that a directory gives, by kind. Pods are not among them: it trusts its files. */
export interface ObjectsByKind {
  readonly Namespace: NamespaceObject;
  readonly Node: NodeObject;
  readonly Service: ServiceObject;
  readonly EndpointSlice: SliceObject;
  readonly TenantPolicy: TenantPolicyObject;
  readonly Suspension: SuspensionObject;
  readonly Secret: SecretObject;
}

export type ManifestKind = keyof ObjectsByKind;

interface ManifestType {
  readonly apiVersion: string;
  readonly namespaced: boolean;
}

export const WEIR_API_VERSION = 'weir.dev/v1alpha1';

export const MANIFEST_KINDS: { readonly [K in ManifestKind]: ManifestType } = {
  Namespace: { apiVersion: 'v1', namespaced: false },
  Node: { apiVersion: 'v1', namespaced: false },
  Service: { apiVersion: 'v1', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', namespaced: true },
  TenantPolicy: { apiVersion: WEIR_API_VERSION, namespaced: false },
  Suspension: { apiVersion: WEIR_API_VERSION, namespaced: false },
  Secret: { apiVersion: 'v1', namespaced: true },
};

/** How the kinds that are read are read. */
export type ManifestParsers = { readonly [K in ManifestKind]?: (raw: unknown) => ParseResult<ObjectsByKind[K]> };

/** Without a sealer Secrets are none of them. */
export function manifestParsersFor(sealer: Sealer | undefined): ManifestParsers {
  return {
    Namespace: parseNamespace,
    Node: parseNode,
    Service: parseService,
    EndpointSlice: parseEndpointSlice,
    TenantPolicy: parseTenantPolicy,
    Suspension: parseSuspension,
    ...(sealer && { Secret: (raw) => parseSecret(raw, sealer) }),
  };
}

export type Recognition =
  | { readonly kind: 'read'; readonly as: ManifestKind }
  /** Nothing that Weir reads: counted. */
  | { readonly kind: 'other' }
  | { readonly kind: 'unknown'; readonly allowed: string };

/** Written by the controller, so it is no mistake that a dump of a cluster holds them. */
const WRITTEN_BY_WEIR = ['TenantUsage'];

export function recognize(apiVersion: string, kind: string): Recognition {
  const as = (Object.keys(MANIFEST_KINDS) as ManifestKind[]).find((each) => each === kind);
  if (as !== undefined && MANIFEST_KINDS[as].apiVersion === apiVersion) return { kind: 'read', as };
  const group = groupOf(apiVersion);
  if (as !== undefined && group === groupOf(MANIFEST_KINDS[as].apiVersion)) {
    return { kind: 'unknown', allowed: `apiVersion ${MANIFEST_KINDS[as].apiVersion}` };
  }
  if (group !== 'weir.dev' || (apiVersion === WEIR_API_VERSION && WRITTEN_BY_WEIR.includes(kind)))
    return { kind: 'other' };
  return { kind: 'unknown', allowed: `TenantPolicy or Suspension, with apiVersion ${WEIR_API_VERSION}` };
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

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
