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
  readonly loadBalancerClass: string | null;
  readonly deleting: boolean;
  readonly ingress: readonly IngressFacts[];
  /** Only ours. */
  readonly conditions: readonly ConditionFacts[];
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
    loadBalancerClass: spec?.loadBalancerClass ?? null,
    deleting: metadata.deletionTimestamp !== undefined,
    ingress: status?.loadBalancer?.ingress ?? [],
    conditions,
  };
}

/** It comes from an API server, which has validated it. */
interface RawService {
  readonly metadata: {
    readonly uid: string;
    readonly namespace: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec?: { readonly type?: string; readonly loadBalancerClass?: string };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly IngressFacts[] };
    readonly conditions?: readonly ConditionFacts[];
  };
}
