import type { Json } from '../kubernetes/kube-api.ts';

/** `weir.dev/…` */
export const CONDITION_PREFIX = 'weir.dev/';

/** Of Kubernetes. */
export const CLEANUP_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

/** What a Service in the cluster says now, as far as it concerns whoever writes its status. */
export interface ObservedService {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly type: string;
  readonly deleting: boolean;
  readonly ingress: readonly IngressStatus[];
  /** Only ours, or of another fleet. */
  readonly conditions: readonly ServiceCondition[];
  /** The field managers that have something in its status. */
  readonly statusManagers: readonly string[];
  /** The field managers that have put `CLEANUP_FINALIZER` on it through its status: fleets, or others. */
  readonly finalizerManagers: readonly string[];
}

/** An address in `status.loadBalancer.ingress`, whoever wrote it. */
export interface IngressStatus {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ipMode?: string;
  readonly ports?: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
}

export interface ServiceCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** Undefined for a Service that is no load balancer, and on which we left nothing. */
export function observedServiceFor(raw: Json): ObservedService | undefined {
  const { metadata, spec, status } = raw as unknown as RawService;
  const all = status?.conditions ?? [];
  const conditions = all.filter(({ type }) => type.startsWith(CONDITION_PREFIX));
  const type = spec?.type ?? 'ClusterIP';
  const managers = (metadata.managedFields ?? []).filter(isOfStatus);
  const finalizerManagers = managers.filter(hasFinalizer).map(nameOf);
  if (type !== 'LoadBalancer' && conditions.length === 0 && finalizerManagers.length === 0) return undefined;
  return {
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    resourceVersion: metadata.resourceVersion,
    type,
    deleting: metadata.deletionTimestamp !== undefined,
    ingress: status?.loadBalancer?.ingress ?? [],
    conditions,
    statusManagers: managers.map(nameOf),
    finalizerManagers,
  };
}

function isOfStatus({ subresource }: ManagedFields): boolean {
  return subresource === 'status';
}

const nameOf = ({ manager = '' }: ManagedFields): string => manager;

function hasFinalizer({ fieldsV1 }: ManagedFields): boolean {
  return fieldsV1?.['f:metadata']?.['f:finalizers']?.[`v:"${CLEANUP_FINALIZER}"`] !== undefined;
}

interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:metadata'?: { readonly 'f:finalizers'?: Readonly<Record<string, unknown>> } };
}

/** It comes from an API server, which has validated it. */
interface RawService {
  readonly metadata: {
    readonly uid: string;
    readonly namespace: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly managedFields?: readonly ManagedFields[];
  };
  readonly spec?: { readonly type?: string };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly IngressStatus[] };
    readonly conditions?: readonly ServiceCondition[];
  };
}
