import { createHash } from 'node:crypto';
import type {
  ConfigMapObject,
  NamespaceObject,
  NodeObject,
  SecretObject,
  ServiceObject,
  SliceObject,
  SuspensionObject,
  TenantPolicyObject,
} from '@weir/model';
import type { Sealer } from '@weir/runtime';
import { type Json, WEIR_API_VERSION } from '../../kubernetes/kube-api.ts';
import { NAMESPACE_NAME_LABEL, parseNamespace, parseNode } from '../../parse/cluster-objects.ts';
import { parseConfigMap } from '../../parse/config-map.ts';
import { parseEndpointSlice } from '../../parse/endpoint-slice.ts';
import { isObject } from '../../parse/fields.ts';
import type { ParseResult } from '../../parse/parse-object.ts';
import { parseSecret } from '../../parse/secret.ts';
import { parseService } from '../../parse/service.ts';
import { parseSuspension } from '../../parse/suspension.ts';
import { parseTenantPolicy } from '../../parse/tenant-policy.ts';

/** The kinds of objects that manifests define. Pods are not needed, because the addresses in files are trusted without pods. */
export interface ObjectsByKind {
  readonly Namespace: NamespaceObject;
  readonly Node: NodeObject;
  readonly Service: ServiceObject;
  readonly EndpointSlice: SliceObject;
  readonly TenantPolicy: TenantPolicyObject;
  readonly Suspension: SuspensionObject;
  readonly Secret: SecretObject;
  readonly ConfigMap: ConfigMapObject;
}

export type ManifestKind = keyof ObjectsByKind;

interface ManifestType {
  readonly apiVersion: string;
  readonly namespaced: boolean;
}

export const MANIFEST_KINDS: { readonly [K in ManifestKind]: ManifestType } = {
  Namespace: { apiVersion: 'v1', namespaced: false },
  Node: { apiVersion: 'v1', namespaced: false },
  Service: { apiVersion: 'v1', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', namespaced: true },
  TenantPolicy: { apiVersion: WEIR_API_VERSION, namespaced: false },
  Suspension: { apiVersion: WEIR_API_VERSION, namespaced: false },
  Secret: { apiVersion: 'v1', namespaced: true },
  ConfigMap: { apiVersion: 'v1', namespaced: true },
};

/** The parsers by kind. Objects of a kind without a parser are ignored. */
export type ManifestParsers = { readonly [K in ManifestKind]?: (raw: unknown) => ParseResult<ObjectsByKind[K]> };

/** Returns the parsers. Without a sealer, there is no parser for Secrets. */
export function manifestParsersFor(sealer: Sealer | undefined): ManifestParsers {
  return {
    Namespace: parseNamespace,
    Node: parseNode,
    Service: (raw) => parseService(raw),
    EndpointSlice: parseEndpointSlice,
    TenantPolicy: parseTenantPolicy,
    Suspension: parseSuspension,
    ConfigMap: parseConfigMap,
    ...(sealer && { Secret: (raw) => parseSecret(raw, sealer) }),
  };
}

export type Recognition =
  | { readonly kind: 'supported'; readonly manifestKind: ManifestKind }
  /** A kind that Weir does not read. */
  | { readonly kind: 'ignored' }
  /** A mistake in the group, version or name of a kind that Weir reads. `allowed` follows "use " in a message. */
  | { readonly kind: 'unknown'; readonly allowed: string };

/** Kinds of Weir that only the controller writes. They are ignored, because a dump of a cluster may contain them. */
const WRITTEN_BY_WEIR = ['TenantUsage'];

export function recognize(apiVersion: string, kind: string): Recognition {
  const manifestKind = (Object.keys(MANIFEST_KINDS) as ManifestKind[]).find((each) => each === kind);
  const expected = manifestKind && MANIFEST_KINDS[manifestKind].apiVersion;
  if (manifestKind !== undefined && expected === apiVersion) return { kind: 'supported', manifestKind };
  const group = groupOf(apiVersion);
  if (expected !== undefined && group === groupOf(expected)) {
    return { kind: 'unknown', allowed: `apiVersion ${expected}` };
  }
  if (group !== 'weir.dev' || (apiVersion === WEIR_API_VERSION && WRITTEN_BY_WEIR.includes(kind)))
    return { kind: 'ignored' };
  return { kind: 'unknown', allowed: `TenantPolicy or Suspension, with apiVersion ${WEIR_API_VERSION}` };
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

export interface ObjectIdentity {
  readonly kind: ManifestKind;
  readonly namespace?: string;
  readonly name: string;
}

/** Returns the identity of a manifest; undefined if its name or namespace is missing or not text. */
export function identityOf(kind: ManifestKind, raw: Json): ObjectIdentity | undefined {
  const metadata = isObject(raw.metadata) ? raw.metadata : {};
  const { name } = metadata;
  if (typeof name !== 'string' || name === '') return undefined;
  if (!MANIFEST_KINDS[kind].namespaced) return { kind, name };
  const namespace = metadata.namespace || 'default';
  return typeof namespace === 'string' ? { kind, namespace, name } : undefined;
}

/** Returns a UID derived from the identity, so that the UID is the same in every directory and after every restart. */
export function uidFor({ kind, namespace, name }: ObjectIdentity): string {
  const hash = createHash('sha256')
    .update([kind, namespace ?? '', name].join('\0'))
    .digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join('-');
}

/**
 * Adds to a manifest what an API server would add: a UID, the namespace, and the label that every namespace has. Removes the
 * timestamps and the Service status that a dump of another cluster contains.
 */
export function withServerDefaults(identity: ObjectIdentity | undefined, raw: Json): Json {
  const metadata = isObject(raw.metadata) ? raw.metadata : undefined;
  if (identity === undefined || metadata === undefined) {
    return { ...raw, metadata: metadata === undefined ? raw.metadata : { ...metadata, uid: 'unknown' } };
  }
  const { creationTimestamp, deletionTimestamp, namespace, ...rest } = metadata;
  const metadataWithDefaults = {
    ...rest,
    uid: uidFor(identity),
    ...(identity.namespace !== undefined && { namespace: identity.namespace }),
  };
  switch (identity.kind) {
    case 'Service':
      return { ...raw, metadata: metadataWithDefaults, status: null };
    case 'Namespace': {
      const nameLabel = { [NAMESPACE_NAME_LABEL]: identity.name };
      const labels = isObject(rest.labels) ? { ...rest.labels, ...nameLabel } : (rest.labels ?? nameLabel);
      return { ...raw, metadata: { ...metadataWithDefaults, labels } };
    }
    default:
      return { ...raw, metadata: metadataWithDefaults };
  }
}
