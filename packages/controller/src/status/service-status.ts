import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Json } from '../kubernetes/kube-api.ts';

/** What we say of a Service: the part of its status that is ours. */
export interface DesiredStatus {
  readonly ingress: readonly IngressStatus[];
  readonly conditions: readonly ServiceCondition[];
}

/** The status that a view asks for. A condition keeps its time as long as its status stays. `now`: milliseconds since the epoch. */
export function desiredStatusFor(view: ServiceView, facts: ObservedService, now: number): DesiredStatus {
  const ports = portsFor(view);
  return {
    // Proxy: else kube-proxy takes the address for one of its own, and our counters and cut-offs are bypassed.
    ingress: view.addresses.map((ip) => ({ ip, ipMode: 'Proxy', ports })),
    conditions: view.conditions.map((condition) => {
      const type = `${CONDITION_PREFIX}${condition.type}`;
      const before = facts.conditions.find((each) => each.type === type);
      const lastTransitionTime =
        before?.status === condition.status
          ? before.lastTransitionTime
          : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
      const { status, reason, message } = condition;
      return { type, status, reason, message, lastTransitionTime };
    }),
  };
}

/** Every port, because the list is for all or none. */
function portsFor(view: ServiceView): NonNullable<IngressStatus['ports']> {
  const ports = new Map<string, { port: number; protocol: string; error?: string }>();
  for (const { port, protocol } of view.ports) ports.set(`${port}/${protocol}`, { port, protocol });
  for (const { port, protocol, reason } of view.portErrors) {
    ports.set(`${port}/${protocol}`, { port, protocol, error: `${CONDITION_PREFIX}${reason}` });
  }
  return [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}

/** Whether the Service says just this already: then nothing is written. */
export function isStatusCurrent(status: DesiredStatus, facts: ObservedService): boolean {
  return (
    isDeepStrictEqual(status.ingress, facts.ingress) &&
    isDeepStrictEqual(byType(status.conditions), byType(facts.conditions))
  );
}

/**
 * A Service that left us and still exists carries what we said of it, which is not true any more. `fieldManager`: ours; what another
 * fleet says is its own.
 */
export function hasStaleStatus(
  { conditions, deleting, statusManagers }: ObservedService,
  fieldManager: string,
): boolean {
  return conditions.length > 0 && !deleting && statusManagers.includes(fieldManager);
}

function byType(conditions: readonly ServiceCondition[]): unknown {
  return conditions
    .map(({ type, status, reason, message, lastTransitionTime }) => [type, status, reason, message, lastTransitionTime])
    .sort();
}

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
