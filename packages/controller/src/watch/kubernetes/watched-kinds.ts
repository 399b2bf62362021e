import type {
  NamespaceObject,
  NodeObject,
  PodObject,
  SecretObject,
  ServiceCidrObject,
  ServiceObject,
  SliceObject,
  SuspensionObject,
  TenantPolicyObject,
} from '@weir/model';
import { WEIR_API_PATH } from '../../kubernetes/kube-api.ts';
import { parseNamespace, parseNode, parsePod, parseServiceCidr } from '../../parse/cluster-objects.ts';
import { changeTriggerTimeOf, parseEndpointSlice, SERVICE_NAME_LABEL } from '../../parse/endpoint-slice.ts';
import type { ParseResult } from '../../parse/parse-object.ts';
import { parseService } from '../../parse/service.ts';
import { parseSuspension } from '../../parse/suspension.ts';
import { parseTenantPolicy } from '../../parse/tenant-policy.ts';

export interface WatchedObjects {
  readonly Namespace: NamespaceObject;
  readonly Node: NodeObject;
  readonly Service: ServiceObject;
  readonly EndpointSlice: SliceObject;
  readonly Pod: PodObject;
  readonly ServiceCIDR: ServiceCidrObject;
  readonly TenantPolicy: TenantPolicyObject;
  readonly Suspension: SuspensionObject;
  readonly Secret: SecretObject;
}
export type WatchedKind = keyof WatchedObjects;

export interface WatchedKindOptions<K extends WatchedKind> {
  /** Name in kubectl and RBAC. */
  readonly resource: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The namespace that is watched. Absent for all namespaces and for cluster-scoped kinds. */
  readonly namespace?: string;
  /** Objects per page, for kinds with large objects. See `ReflectorOptions.pageSize`. */
  readonly pageSize?: number;
  /** Skip parsing if the version of an object has not changed. */
  readonly isExpensiveToParse?: true;
  /** A custom resource of Weir. Counts as empty until it is installed. */
  readonly isWeirResource: boolean;
  /** Old API servers do not know the kind. Then it counts as empty, without a problem. */
  readonly isOptional?: true;
  /**
   * What a controller does that starts without the permission to list the kind: wait, since nothing can be decided; use fallback objects
   * from the published table; or treat the kind as empty.
   */
  readonly onForbidden: 'wait' | 'fallback' | 'empty';
  /** The effect of an unreadable kind. Follows "until then" in messages. */
  readonly effectUntilReadable: string;
  /** Who grants the permission. Follows "which" in messages. Default: the controller's role in the chart. */
  readonly grantedBy?: string;
  parse(raw: unknown): ParseResult<WatchedObjects[K]>;
  /** When the cause of the object's last change happened, in milliseconds since the epoch, if the object says so. */
  changeTriggerTimeOf?(raw: unknown): number | undefined;
}

const NO_SELECTOR = {};

/** All kinds but Secrets, which `SecretWatches` watches as far as the settings allow. */
export type AlwaysWatchedKind = Exclude<WatchedKind, 'Secret'>;

export const WATCHED_KINDS: { readonly [K in AlwaysWatchedKind]: WatchedKindOptions<K> } = {
  Namespace: {
    resource: 'namespaces',
    path: '/api/v1/namespaces',
    query: NO_SELECTOR,
    isWeirResource: false,
    onForbidden: 'fallback',
    effectUntilReadable: 'tenants keep their limits, and new namespaces get the default policy',
    parse: parseNamespace,
  },
  Node: {
    resource: 'nodes',
    path: '/api/v1/nodes',
    query: NO_SELECTOR,
    isWeirResource: false,
    onForbidden: 'fallback',
    effectUntilReadable: 'Services stay on the nodes that served them before',
    parse: parseNode,
  },
  Service: {
    resource: 'services',
    path: '/api/v1/services',
    query: NO_SELECTOR,
    isWeirResource: false,
    onForbidden: 'wait',
    effectUntilReadable: 'no new Services are served, and served Services stay as they are',
    parse: parseService,
  },
  EndpointSlice: {
    resource: 'endpointslices.discovery.k8s.io',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    query: { labelSelector: SERVICE_NAME_LABEL },
    isWeirResource: false,
    onForbidden: 'fallback',
    effectUntilReadable: 'Services keep their endpoints, and new Services get no endpoints',
    parse: parseEndpointSlice,
    changeTriggerTimeOf,
  },
  Pod: {
    resource: 'pods',
    path: '/api/v1/pods',
    query: { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' },
    isWeirResource: false,
    onForbidden: 'fallback',
    effectUntilReadable:
      'earlier endpoints stay in use, and new endpoints are used only if allowedEndpointCIDRs contains them',
    parse: parsePod,
  },
  ServiceCIDR: {
    resource: 'servicecidrs.networking.k8s.io',
    path: '/apis/networking.k8s.io/v1/servicecidrs',
    query: NO_SELECTOR,
    isWeirResource: false,
    isOptional: true,
    onForbidden: 'empty',
    effectUntilReadable: 'only WEIR_SERVICE_CIDRS says which addresses are cluster IPs, which endpoints may not have',
    parse: parseServiceCidr,
  },
  TenantPolicy: {
    resource: 'tenantpolicies.weir.dev',
    path: `${WEIR_API_PATH}/tenantpolicies`,
    query: NO_SELECTOR,
    isWeirResource: true,
    onForbidden: 'fallback',
    effectUntilReadable: 'tenants keep their limits, and new namespaces get the default policy',
    parse: parseTenantPolicy,
  },
  Suspension: {
    resource: 'suspensions.weir.dev',
    path: `${WEIR_API_PATH}/suspensions`,
    query: NO_SELECTOR,
    isWeirResource: true,
    onForbidden: 'empty',
    effectUntilReadable: 'suspensions stay in force, and new Suspensions are not seen',
    parse: parseSuspension,
  },
};
