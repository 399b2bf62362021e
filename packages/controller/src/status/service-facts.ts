import type { Json } from '../kubernetes/kube-api.ts';

/** `weir.dev/…` */
export const CONDITION_PREFIX = 'weir.dev/';

/** What a Service in the cluster says now, as far as it concerns whoever writes its status. */
export interface ServiceFacts {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly type: string;
  readonly deleting: boolean;
  readonly ingress: readonly IngressFacts[];
  /** Only ours, or of another fleet. */
  readonly conditions: readonly ConditionFacts[];
  /** The field managers that have something in its status. */
  readonly saidBy: readonly string[];
}

/** An address in `status.loadBalancer.ingress`, whoever wrote it. */
export interface IngressFacts {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ipMode?: string;
  readonly ports?: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
}

export interface ConditionFacts {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** Undefined for a Service that is no load balancer, and on which we left nothing. */
export function serviceFactsFor(raw: Json): ServiceFacts | undefined {
  const { metadata, spec, status } = raw as unknown as RawService;
  const all = status?.conditions ?? [];
  const conditions = all.filter(({ type }) => type.startsWith(CONDITION_PREFIX));
  const type = spec?.type ?? 'ClusterIP';
  if (type !== 'LoadBalancer' && conditions.length === 0) return undefined;
  return {
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    resourceVersion: metadata.resourceVersion,
    type,
    deleting: metadata.deletionTimestamp !== undefined,
    ingress: status?.loadBalancer?.ingress ?? [],
    conditions,
    saidBy: (metadata.managedFields ?? []).filter(isOfStatus).map(({ manager = '' }) => manager),
  };
}

function isOfStatus({ subresource }: ManagedFields): boolean {
  return subresource === 'status';
}

interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
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
    readonly loadBalancer?: { readonly ingress?: readonly IngressFacts[] };
    readonly conditions?: readonly ConditionFacts[];
  };
}
