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
import { parseNamespace } from '../../snapshot/namespace.ts';
import { parseNode } from '../../snapshot/node.ts';
import type { ParseResult } from '../../snapshot/projection.ts';
import { parseSecret } from '../../snapshot/secret.ts';
import { parseService } from '../../snapshot/service.ts';
import { parseEndpointSlice } from '../../snapshot/slice.ts';
import { parseSuspension } from '../../snapshot/suspension.ts';
import { parseTenantPolicy } from '../../snapshot/tenant-policy.ts';

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
