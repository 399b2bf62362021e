import { isDeepStrictEqual } from 'node:util';
import type { ServiceView } from '@weir/model';
import type { Json } from '../kubernetes/kube-api.ts';
import { INGRESS_FIELD, type ManagedFields, ownsStatusField } from '../kubernetes/managed-fields.ts';
import { WEIR_PREFIX } from '../parse/parse-object.ts';
import type { StatusTarget } from './status-writer.ts';

/** The part of a Service's status that Weir writes. */
export interface DesiredStatus {
  readonly ingress: readonly IngressStatus[];
  readonly conditions: readonly ServiceCondition[];
}

/**
 * Returns the status for a view. A condition without `since` keeps its transition time as long as its `status` stays the same. `now` is in
 * milliseconds since the epoch.
 */
export function desiredStatusFor(view: ServiceView, observed: ObservedService, now: number): DesiredStatus {
  const ports = portsFor(view);
  return {
    // Without mode Proxy, kube-proxy would deliver traffic to the address directly, bypassing Weir's limits, counters and
    // suspensions.
    ingress: view.addresses.map((ip) => ({ ip, ipMode: 'Proxy', ports })),
    conditions: view.conditions.map((condition) => {
      const type = `${WEIR_PREFIX}${condition.type}`;
      const before = observed.conditions.find((each) => each.type === type);
      const { status, reason, message, since } = condition;
      const isSameState = since === undefined && before?.status === status;
      const lastTransitionTime = isSameState ? before.lastTransitionTime : metaTime(since ?? now);
      return { type, status, reason, message, lastTransitionTime };
    }),
  };
}

/** Formats milliseconds since the epoch as metav1.Time. */
function metaTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Returns all ports of the Service, because Kubernetes requires the list to be complete or absent. */
function portsFor(view: ServiceView): NonNullable<IngressStatus['ports']> {
  const ports = new Map<string, { port: number; protocol: string; error?: string }>();
  for (const { port, protocol } of view.ports) ports.set(`${port}/${protocol}`, { port, protocol });
  for (const { port, protocol, reason } of view.portErrors) {
    ports.set(`${port}/${protocol}`, { port, protocol, error: `${WEIR_PREFIX}${reason}` });
  }
  return [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}

/**
 * Whether the Service already shows the desired status. If no addresses are desired, the addresses of other field managers do not count,
 * because a write of `fieldManager` could not remove them.
 */
export function isStatusCurrent(status: DesiredStatus, observed: ObservedService, fieldManager: string): boolean {
  const isForeign = observed.ingress.length > 0 && !observed.ingressManagers.includes(fieldManager);
  return (
    ((status.ingress.length === 0 && isForeign) || isDeepStrictEqual(status.ingress, observed.ingress)) &&
    isDeepStrictEqual(byType(status.conditions), byType(observed.conditions))
  );
}

/** Returns the field manager that last changed the status, besides `ownManagers`. Prefers a manager of the addresses. */
export function lastForeignManager(
  { statusManagers, ingressManagers }: ObservedService,
  ownManagers: readonly string[],
): string {
  const isForeign = (name: string): boolean => !ownManagers.includes(name);
  return ingressManagers.findLast(isForeign) ?? statusManagers.findLast(isForeign) ?? 'unknown';
}

/**
 * Whether the Service still has a status that this fleet wrote as `fieldManager`. The status of another fleet does not count. Call
 * this for a Service that this fleet does not serve any more.
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

/** The finalizer that Kubernetes defines for load balancers. */
export const CLEANUP_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

/** Returns the target of a write to the Service's status. */
export function statusTargetFor({ uid, namespace, name, resourceVersion }: ObservedService): StatusTarget {
  const path = `/api/v1/namespaces/${namespace}/services/${name}`;
  return { apiVersion: 'v1', kind: 'Service', uid, namespace, name, resourceVersion, path };
}

/** The fields of a Service in the cluster that matter for its status and finalizer. */
export interface ObservedService {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly type: string;
  readonly deleting: boolean;
  readonly ingress: readonly IngressStatus[];
  /** Only conditions of Weir, written by this fleet or another fleet. */
  readonly conditions: readonly ServiceCondition[];
  /** The field managers that own fields of the Service's status. */
  readonly statusManagers: readonly string[];
  /** The field managers that own the addresses in the status. */
  readonly ingressManagers: readonly string[];
  /**
   * The field managers that added `CLEANUP_FINALIZER` through the status subresource. They may belong to this fleet, another fleet or
   * another controller.
   */
  readonly finalizerManagers: readonly string[];
}

/** An entry of `status.loadBalancer.ingress`, written by any controller. */
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

/**
 * Reads the fields that matter for the status. Returns undefined if the Service is not a load balancer and has neither a condition of
 * Weir nor the cleanup finalizer.
 */
export function observedServiceFor(raw: Json): ObservedService | undefined {
  const { metadata, spec, status } = raw as unknown as RawService;
  const conditions = (status?.conditions ?? []).filter((condition) => condition.type.startsWith(WEIR_PREFIX));
  const type = spec?.type ?? 'ClusterIP';
  const managers = (metadata.managedFields ?? []).filter(isOfStatus).sort(byTime);
  const finalizerManagers = managers.filter((each) => ownsStatusField(each, FINALIZER_FIELD)).map(nameOf);
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
    ingressManagers: managers.filter((each) => ownsStatusField(each, INGRESS_FIELD)).map(nameOf),
    finalizerManagers,
  };
}

function isOfStatus({ subresource }: ManagedFields): boolean {
  return subresource === 'status';
}

function byTime({ time: a = '' }: ManagedFields, { time: b = '' }: ManagedFields): number {
  return a < b ? -1 : Number(a > b);
}

const nameOf = ({ manager = '' }: ManagedFields): string => manager;

const FINALIZER_FIELD = ['f:metadata', 'f:finalizers', `v:"${CLEANUP_FINALIZER}"`];

/** The fields of a Service that this file reads. The API server has validated them. */
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
