// What doctor sees of the world. Everything that is decided starts from here.
import type { ServerProbe } from '@weir/controller';
import type { Heartbeat } from '@weir/model';
import type { RedisInspection } from '@weir/store';
import type { Fact } from './fact.ts';

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
