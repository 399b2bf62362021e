import type { ServerProbe } from '@weir/controller';
import { EXCLUDE_NODE_LABEL, type Heartbeat, isExcludedNode, isLoadBalancerNode, nodeAddressesOf } from '@weir/model';
import type { RedisInspection } from '@weir/store';

// The facts that `weir doctor` collects. Each check is a pure function of these facts.
export interface Facts {
  /** Time at which the facts were collected, in milliseconds since the epoch, on this machine's clock. */
  readonly now: number;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  /** Version of this command. */
  readonly version: string;
  readonly server: Fact<Timed<ServerProbe>>;
  /** Resources of `weir.dev/v1alpha1` that the API server serves. */
  readonly customResources: Fact<readonly string[]>;
  /** Ranges of cluster IPs from the ServiceCIDR objects. Empty if the API server does not serve that kind. */
  readonly serviceRanges: Fact<readonly string[]>;
  /** `WEIR_SERVICE_CIDRS` in the environment of this command. */
  readonly serviceCidrs: string | undefined;
  readonly leases: Fact<readonly LeaseFact[]>;
  readonly nodes: Fact<readonly NodeFact[]>;
  readonly services: Fact<readonly ServiceFact[]>;
  readonly policies: Fact<readonly PolicyFact[]>;
  readonly redis: Fact<Timed<RedisInspection>>;
  readonly heartbeats: Fact<Timed<{ readonly items: readonly Heartbeat[] }>>;
  readonly host: HostFact;
}

/** A response, and the times of request and response on this machine's clock, in milliseconds. */
export type Timed<T> = T & { readonly askedAt: number; readonly answeredAt: number };

/** The name of the node label and of the Service annotation that choose a node pool. */
export const POOL_KEY = 'weir.dev/pool';

/** Prefix of the name of a controller's Lease. The name of the fleet follows the prefix. */
export const LEASE_PREFIX = 'weir-controller-';

export interface LeaseFact {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string | null;
  /** Time of the last renewal, in milliseconds since the epoch, on the holder's clock. */
  readonly renewedAt: number | null;
  readonly durationMs: number;
}

export interface NodeFact {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly internalIPs: readonly string[];
  readonly podCIDRs: readonly string[];
  readonly isCordoned: boolean;
  readonly isReady: boolean;
  readonly isDeleting: boolean;
}

/** A Service of type LoadBalancer. */
export interface ServiceFact {
  readonly namespace: string;
  readonly name: string;
  readonly loadBalancerClass: string | null;
  readonly ignored: boolean;
  /** Value of the annotation `weir.dev/pool`. */
  readonly pool: string | null;
  readonly createdAt: number | null;
  readonly isDeleting: boolean;
  readonly ports: readonly number[];
  readonly nodePorts: readonly number[];
  readonly ingress: readonly IngressFact[];
  /** Whether the status of the Service has a condition that Weir wrote. */
  readonly hasWeirCondition: boolean;
}

export interface IngressFact {
  /** Null if the ingress has a host name instead of an IP address. */
  readonly ip: string | null;
  readonly ipMode: string | null;
}

export interface PolicyFact {
  readonly name: string;
  readonly pools: readonly string[];
}

/** The machine on which `weir doctor` runs. */
export interface HostFact {
  readonly addresses: readonly string[];
  /** Warnings about kernel settings. Undefined if the machine does not run Linux. */
  readonly kernelWarnings: readonly string[] | undefined;
}

/** A value, or the reason why the value is unknown. */
export type Fact<T> = KnownFact<T> | UnknownFact;

interface KnownFact<T> {
  readonly kind: 'known';
  readonly value: T;
}

/** `failed`: the request failed. `not-asked`: no kubeconfig or Redis URL was found, so no request was sent. */
export interface UnknownFact {
  readonly kind: 'unknown';
  readonly cause: 'failed' | 'not-asked';
  /** One sentence without a full stop, which tells the user what to do. */
  readonly message: string;
}

export function knownFact<T>(value: T): KnownFact<T> {
  return { kind: 'known', value };
}

export function unknownFact(cause: UnknownFact['cause'], message: string): UnknownFact {
  return { kind: 'unknown', cause, message };
}

/** Returns the nodes that have the label for proxies. */
export function labelledNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return nodes.filter(isLoadBalancerNode);
}

/** Returns the labelled nodes on which Weir can place Services. */
export function usableNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return labelledNodes(nodes).filter(
    (node) => exclusionReason(node) === undefined && nodeAddressesOf(node).bind.length > 0,
  );
}

/** Returns why Weir places no Service on a labelled node, and how to change that. Returns undefined if the node is not excluded. */
export function exclusionReason(node: NodeFact): string | undefined {
  const { name, isCordoned, isDeleting } = node;
  if (isDeleting) return `${name} is being deleted`;
  if (isExcludedNode(node)) {
    return `${name} has the label ${EXCLUDE_NODE_LABEL} (to undo: kubectl label node ${name} ${EXCLUDE_NODE_LABEL}-)`;
  }
  if (isCordoned) return `${name} is cordoned (to undo: kubectl uncordon ${name})`;
  return undefined;
}

/**
 * Returns the Services that Weir manages: Services with Weir's loadBalancerClass, and Services on which Weir has written a condition. A
 * controller with WEIR_CLASSLESS=true writes conditions on Services without a class.
 */
export function managedServices(
  services: readonly ServiceFact[],
  { loadBalancerClass }: Pick<Facts, 'loadBalancerClass'>,
): readonly ServiceFact[] {
  return services.filter(
    (service) => !service.ignored && (service.loadBalancerClass === loadBalancerClass || service.hasWeirCondition),
  );
}

export function serviceName({ namespace, name }: ServiceFact): string {
  return `${namespace}/${name}`;
}
