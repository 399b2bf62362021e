import type {
  ConfigMapObject,
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
import { parseService, reuseUnchangedParts, type ServiceOptions } from '../../parse/service.ts';
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
  readonly ConfigMap: ConfigMapObject;
}
export type WatchedKind = keyof WatchedObjects;

export interface WatchedKindOptions<K extends WatchedKind> {
  /** The name of the kind in kubectl and RBAC. */
  readonly resource: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The namespace that is watched. Absent if all namespaces are watched, or if the kind is cluster-scoped. */
  readonly namespace?: string;
  /** The name of the only object that is watched. Absent if all objects are watched. */
  readonly objectName?: string;
  /** Objects per page, for kinds with large objects. See `ReflectorOptions.pageSize`. */
  readonly pageSize?: number;
  /** If set, an object is parsed only if its version has changed. */
  readonly isExpensiveToParse?: true;
  /** Whether the kind is a custom resource of Weir. Such a kind counts as empty until it is installed. */
  readonly isWeirResource: boolean;
  /** If set, and an old API server does not know the kind, the kind counts as empty and no problem is reported. */
  readonly isOptional?: true;
  /**
   * The reaction of a controller that starts without the permission to list the kind: `wait`, because nothing can be decided; use
   * `fallback` objects from the published table; or treat the kind as `empty`.
   */
  readonly onForbidden: 'wait' | 'fallback' | 'empty';
  /** A clause about the effect of an unreadable kind. Follows "until then" in messages. */
  readonly effectUntilReadable: string;
  /**
   * A clause such as "the chart grants with tls.secretAccess=cluster", which completes the message "The controller needs list and watch,
   * which …". Default: a clause about `helm upgrade`.
   */
  readonly grantedBy?: string;
  parse(raw: unknown): ParseResult<WatchedObjects[K]>;
  /** Returns the new version of an object (`object`), but reuses large parts of the previous version that did not change. */
  reuse?(object: WatchedObjects[K], previous: WatchedObjects[K]): WatchedObjects[K];
  /**
   * Returns when the cause of the object's last change happened, in milliseconds since the epoch. Undefined if the object does not
   * record this time.
   */
  changeTriggerTimeOf?(raw: unknown): number | undefined;
}

const NO_SELECTOR = {};

/**
 * All kinds except Secrets and ConfigMaps. `SecretWatches` watches the Secrets that the settings allow, and `ConfigMapWatches` the
 * ConfigMaps that Services name.
 */
export type AlwaysWatchedKind = Exclude<WatchedKind, 'Secret' | 'ConfigMap'>;

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
    isExpensiveToParse: true,
    parse: (raw) => parseService(raw),
    reuse: reuseUnchangedParts,
  },
  EndpointSlice: {
    resource: 'endpointslices.discovery.k8s.io',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    query: { labelSelector: SERVICE_NAME_LABEL },
    isWeirResource: false,
    onForbidden: 'fallback',
    effectUntilReadable: 'Services keep their endpoints, and new Services get no endpoints',
    isExpensiveToParse: true,
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
    effectUntilReadable: 'endpoints are checked only against the cluster IP ranges in WEIR_SERVICE_CIDRS',
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
    effectUntilReadable: 'suspensions stay in force, and new Suspensions have no effect',
    parse: parseSuspension,
  },
};

/** Returns the kinds with the options of one fleet. */
export function watchedKindsFor(options: ServiceOptions): typeof WATCHED_KINDS {
  return { ...WATCHED_KINDS, Service: { ...WATCHED_KINDS.Service, parse: (raw) => parseService(raw, options) } };
}
