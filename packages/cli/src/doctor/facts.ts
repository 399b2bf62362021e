import type { ServerProbe } from '@weir/controller';
import { EXCLUDE_NODE_LABEL, type Heartbeat, isExcludedNode, isLoadBalancerNode, nodeAddressesOf } from '@weir/model';
import type { RedisInspection } from '@weir/store';

// What doctor sees of the world. Everything that is decided starts from here.
export interface Facts {
  /** Milliseconds since the epoch, by the clock of this machine. */
  readonly now: number;
  readonly fleet: string;
  readonly loadBalancerClass: string;
  /** Of this command. */
  readonly version: string;
  readonly server: Fact<Timed<ServerProbe>>;
  /** Resources of `weir.dev/v1alpha1` that are served. */
  readonly customResources: Fact<readonly string[]>;
  /** Of the ServiceCIDR objects: the ranges of cluster IPs; none where they are not served. */
  readonly serviceRanges: Fact<readonly string[]>;
  /** `WEIR_SERVICE_CIDRS`, as the controller has it. */
  readonly serviceCidrs: string | undefined;
  readonly leases: Fact<readonly LeaseFact[]>;
  readonly nodes: Fact<readonly NodeFact[]>;
  readonly services: Fact<readonly ServiceFact[]>;
  readonly policies: Fact<readonly PolicyFact[]>;
  readonly redis: Fact<Timed<RedisInspection>>;
  readonly heartbeats: Fact<Timed<{ readonly items: readonly Heartbeat[] }>>;
  readonly host: HostFact;
}

/** An answer, and when by this machine's clock it was asked for and had. */
export type Timed<T> = T & { readonly askedAt: number; readonly answeredAt: number };

export interface LeaseFact {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string | null;
  /** Milliseconds since the epoch, by the holder's clock. */
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

/** Of type LoadBalancer. */
export interface ServiceFact {
  readonly namespace: string;
  readonly name: string;
  readonly loadBalancerClass: string | null;
  readonly ignored: boolean;
  /** Its annotation `weir.dev/pool`. */
  readonly pool: string | null;
  readonly createdAt: number | null;
  readonly isDeleting: boolean;
  readonly ports: readonly number[];
  readonly nodePorts: readonly number[];
  readonly ingress: readonly IngressFact[];
  /** Weir has said something of it. */
  readonly hasWeirCondition: boolean;
}

export interface IngressFact {
  /** Null of one that is a host name. */
  readonly ip: string | null;
  readonly ipMode: string | null;
}

export interface PolicyFact {
  readonly name: string;
  readonly pools: readonly string[];
}

/** The machine that doctor runs on. */
export interface HostFact {
  readonly addresses: readonly string[];
  /** What of its kernel's settings will cost clients something; undefined: it was not looked at. */
  readonly kernelWarnings: readonly string[] | undefined;
}

/** Something that was looked at, or why it could not be. */
export type Fact<T> = KnownFact<T> | UnknownFact;

interface KnownFact<T> {
  readonly kind: 'known';
  readonly value: T;
}

/** `failed`: it was asked for and did not answer as it should; `not-asked`: nobody said where it is. */
export interface UnknownFact {
  readonly kind: 'unknown';
  readonly cause: 'failed' | 'not-asked';
  /** A sentence without its full stop, with what to do. */
  readonly message: string;
}

export function knownFact<T>(value: T): KnownFact<T> {
  return { kind: 'known', value };
}

export function unknownFact(cause: UnknownFact['cause'], message: string): UnknownFact {
  return { kind: 'unknown', cause, message };
}

/** Those that are to carry proxies, whether or not they can. */
export function labelledNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return nodes.filter(isLoadBalancerNode);
}

/** Those of them on which Services are placed. */
export function usableNodes(nodes: readonly NodeFact[]): readonly NodeFact[] {
  return labelledNodes(nodes).filter(
    (node) => exclusionReason(node) === undefined && nodeAddressesOf(node).bind.length > 0,
  );
}

/** Why no Service is placed on a labelled node, and what to do; undefined: they are. */
export function exclusionReason(node: NodeFact): string | undefined {
  const { name, isCordoned, isDeleting } = node;
  if (isDeleting) return `${name} is being deleted`;
  if (isExcludedNode(node)) {
    return `${name} has the label ${EXCLUDE_NODE_LABEL} (to take it back: kubectl label node ${name} ${EXCLUDE_NODE_LABEL}-)`;
  }
  if (isCordoned) return `${name} is cordoned (to take it back: kubectl uncordon ${name})`;
  return undefined;
}

/**
 * Services that Weir takes: those of its class, and those of which it has said something, as it does of Services without class
 * when the controller is classless.
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
