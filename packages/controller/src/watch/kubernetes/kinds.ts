import type {
  NamespaceObject,
  NodeObject,
  PodObject,
  ServiceObject,
  SliceObject,
  SuspensionObject,
  TenantPolicyObject,
} from '@weir/model';
import { changeTriggerOf } from '../../snapshot/change-trigger.ts';
import { projectNamespace } from '../../snapshot/namespace.ts';
import { projectNode } from '../../snapshot/node.ts';
import { projectPod } from '../../snapshot/pod.ts';
import type { Projection } from '../../snapshot/projection.ts';
import { projectService } from '../../snapshot/service.ts';
import { projectSlice, SERVICE_NAME_LABEL } from '../../snapshot/slice.ts';
import { projectSuspension } from '../../snapshot/suspension.ts';
import { projectTenantPolicy } from '../../snapshot/tenant-policy.ts';

export interface WatchedObjects {
  readonly Namespace: NamespaceObject;
  readonly Node: NodeObject;
  readonly Service: ServiceObject;
  readonly EndpointSlice: SliceObject;
  readonly Pod: PodObject;
  readonly TenantPolicy: TenantPolicyObject;
  readonly Suspension: SuspensionObject;
}
export type WatchedKind = keyof WatchedObjects;

export interface KindOptions<K extends WatchedKind> {
  /** As kubectl and RBAC name it. */
  readonly resource: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /**
   * Without it nothing can be decided: what is served stays as it is. The others are ours, and may not be installed yet; their
   * absence reads as "none".
   */
  readonly isNeeded: boolean;
  project(raw: unknown): Projection<WatchedObjects[K]>;
  /** When it was caused to change, as the object says itself, milliseconds since the epoch. */
  triggerOf?(raw: unknown): number | undefined;
}

const WEIR_API = '/apis/weir.dev/v1alpha1';
const ALL = {};

export const WATCHED_KINDS: { readonly [K in WatchedKind]: KindOptions<K> } = {
  Namespace: {
    resource: 'namespaces',
    path: '/api/v1/namespaces',
    query: ALL,
    isNeeded: true,
    project: projectNamespace,
  },
  Node: { resource: 'nodes', path: '/api/v1/nodes', query: ALL, isNeeded: true, project: projectNode },
  Service: { resource: 'services', path: '/api/v1/services', query: ALL, isNeeded: true, project: projectService },
  EndpointSlice: {
    resource: 'endpointslices.discovery.k8s.io',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    query: { labelSelector: SERVICE_NAME_LABEL },
    isNeeded: true,
    project: projectSlice,
    triggerOf: changeTriggerOf,
  },
  Pod: {
    resource: 'pods',
    path: '/api/v1/pods',
    query: { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' },
    isNeeded: true,
    project: projectPod,
  },
  TenantPolicy: {
    resource: 'tenantpolicies.weir.dev',
    path: `${WEIR_API}/tenantpolicies`,
    query: ALL,
    isNeeded: false,
    project: projectTenantPolicy,
  },
  Suspension: {
    resource: 'suspensions.weir.dev',
    path: `${WEIR_API}/suspensions`,
    query: ALL,
    isNeeded: false,
    project: projectSuspension,
  },
};
