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
  /** As kubectl and RBAC name it. */
  readonly resource: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The one that it is read in; absent: all, or those of the kind are in none. */
  readonly namespace?: string;
  /** How many are asked for at once; absent: many, and all of them when that fails. For kinds whose objects may be very long. */
  readonly pageSize?: number;
  /** To project one takes so long that it is not done twice for the same version of it. */
  readonly isCostly?: true;
  /** One of our custom resources, which may not be installed yet: then there are none. */
  readonly isOurs: boolean;
  /** Older API servers do not serve it: then there are none, and nobody needs to know. */
  readonly isNew?: true;
  /**
   * A controller that starts without the right to read it waits, since nothing can be decided; or takes what the table in force tells
   * of it; or takes it that there are none.
   */
  readonly whenForbidden: 'wait' | 'table' | 'none';
  /** What that means, to be said after "until then". */
  readonly meanwhile: string;
  /** What grants the right, to be said after "as"; absent: the role that everything else stands in. */
  readonly grant?: string;
  project(raw: unknown): ParseResult<WatchedObjects[K]>;
  /** When it was caused to change, as the object says itself, milliseconds since the epoch. */
  changeTriggerTimeOf?(raw: unknown): number | undefined;
}

const WEIR_API = '/apis/weir.dev/v1alpha1';
const NO_SELECTOR = {};

/** Which Secrets are read, if any, is a setting: see `SecretWatches`. */
export type AlwaysWatchedKind = Exclude<WatchedKind, 'Secret'>;

export const WATCHED_KINDS: { readonly [K in AlwaysWatchedKind]: WatchedKindOptions<K> } = {
  Namespace: {
    resource: 'namespaces',
    path: '/api/v1/namespaces',
    query: NO_SELECTOR,
    isOurs: false,
    whenForbidden: 'table',
    meanwhile:
      'tenants stay as they are, with the limits that they have, and new namespaces are under the default policy',
    project: parseNamespace,
  },
  Node: {
    resource: 'nodes',
    path: '/api/v1/nodes',
    query: NO_SELECTOR,
    isOurs: false,
    whenForbidden: 'table',
    meanwhile: 'Services are placed on the nodes that served before, as they were',
    project: parseNode,
  },
  Service: {
    resource: 'services',
    path: '/api/v1/services',
    query: NO_SELECTOR,
    isOurs: false,
    whenForbidden: 'wait',
    meanwhile: 'nothing new is served, and what is served stays as it was last known',
    project: parseService,
  },
  EndpointSlice: {
    resource: 'endpointslices.discovery.k8s.io',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    query: { labelSelector: SERVICE_NAME_LABEL },
    isOurs: false,
    whenForbidden: 'table',
    meanwhile: 'Services keep the endpoints that they had, and new ones get none',
    project: parseEndpointSlice,
    changeTriggerTimeOf: changeTriggerTimeOf,
  },
  Pod: {
    resource: 'pods',
    path: '/api/v1/pods',
    query: { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' },
    isOurs: false,
    whenForbidden: 'table',
    meanwhile: 'endpoints that served before go on, and others are used only where allowedEndpointCIDRs has them',
    project: parsePod,
  },
  ServiceCIDR: {
    resource: 'servicecidrs.networking.k8s.io',
    path: '/apis/networking.k8s.io/v1/servicecidrs',
    query: NO_SELECTOR,
    isOurs: false,
    isNew: true,
    whenForbidden: 'none',
    meanwhile: 'the ranges of cluster IPs, which no endpoint may be in, are those of WEIR_SERVICE_CIDRS',
    project: parseServiceCidr,
  },
  TenantPolicy: {
    resource: 'tenantpolicies.weir.dev',
    path: `${WEIR_API}/tenantpolicies`,
    query: NO_SELECTOR,
    isOurs: true,
    whenForbidden: 'table',
    meanwhile:
      'tenants stay as they are, with the limits that they have, and new namespaces are under the default policy',
    project: parseTenantPolicy,
  },
  Suspension: {
    resource: 'suspensions.weir.dev',
    path: `${WEIR_API}/suspensions`,
    query: NO_SELECTOR,
    isOurs: true,
    whenForbidden: 'none',
    meanwhile: 'what is cut off stays so, and new Suspensions are not seen',
    project: parseSuspension,
  },
};
