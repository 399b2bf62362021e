import type { FleetSettings } from './fleet-settings.ts';
import type { TenantPolicySpec } from './policy.ts';
import type { Problem } from './problem.ts';
import type { RuleRecord } from './rules/rule.ts';

// The objects of a cluster (or of a directory of manifests), reduced to the fields that Weir reads. A source builds the snapshot
// sorted by namespace and name, and freezes it. Every decision of the model is a function of a snapshot.
export interface Snapshot {
  readonly settings: FleetSettings;
  readonly namespaces: readonly NamespaceObject[];
  readonly nodes: readonly NodeObject[];
  readonly services: readonly ServiceObject[];
  readonly slices: readonly SliceObject[];
  /** Empty for manifest files, whose endpoints are trusted without pods. */
  readonly pods: readonly PodObject[];
  /** Absent if the cluster has no ServiceCIDR objects; `settings.trust` then holds the only known ranges. */
  readonly serviceCidrs?: readonly ServiceCidrObject[];
  readonly policies: readonly TenantPolicyObject[];
  readonly suspensions: readonly SuspensionObject[];
  /** Secrets that Services may name as certificate or client CA; absent if Secrets are not read. */
  readonly secrets?: readonly SecretObject[];
  /** Namespaces whose Secrets should be readable, but are not, because a permission is missing; absent if there are none. */
  readonly unreadableSecrets?: 'everywhere' | ReadonlySet<string>;
  /** By `objectPath`, the certificates that are not yet valid, expire soon or have expired; absent if there are none. */
  readonly validity?: ReadonlyMap<string, CertificateValidity>;
  /** ConfigMaps that Services name as error pages or as CAs of their endpoints; absent if there are none. */
  readonly configMaps?: readonly ConfigMapObject[];
  /** By `objectPath`, the ConfigMaps that Services name, but that are not read yet or cannot be read; absent if there are none. */
  readonly unreadConfigMaps?: ReadonlyMap<string, 'waiting' | 'forbidden' | 'too-many'>;
  /** Problems of the source itself: unreadable files, invalid documents, or kinds that the source has no permission to list. */
  readonly problems: readonly Problem[];
  /** Nodes whose proxy sends no heartbeats, by name; absent if there are none, or if heartbeats are not read. */
  readonly unreachableNodes?: ReadonlyMap<string, NodeUnreachability>;
  /** By name of the tenant, what rules do to it; absent if rules are not evaluated. */
  readonly ruleRecords?: ReadonlyMap<string, readonly RuleRecord[]>;
}

/**
 * How a node is unreachable. `silent`: the node gets no new ports. `lost`: the node has been silent for minutes, and its Services move to
 * other nodes if there is room for them.
 */
export type NodeUnreachability = 'silent' | 'lost';

export interface ObjectMeta {
  readonly uid: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch; null if the source does not know the time, as for manifests. */
  readonly createdAt: number | null;
}

export interface NamespacedMeta extends ObjectMeta {
  readonly namespace: string;
}

export type NamespaceObject = ObjectMeta;

export interface NodeObject extends ObjectMeta {
  readonly internalIPs: readonly string[];
  readonly externalIPs: readonly string[];
  /** True if the node is cordoned. The node then keeps its ports and gets no new ports. */
  readonly unschedulable: boolean;
}

export interface ServicePort {
  readonly name: string | null;
  readonly port: number;
  readonly protocol: string;
  readonly appProtocol: string | null;
  readonly nodePort: number | null;
}

export interface ServiceObject extends NamespacedMeta {
  readonly type: string;
  readonly loadBalancerClass: string | null;
  readonly ports: readonly ServicePort[];
  readonly hasSelector: boolean;
  /** Absent if the Service has no cluster IPs. */
  readonly clusterIPs?: readonly string[];
  /** The timeout of ClientIP affinity; null if the Service has no affinity. */
  readonly clientIpAffinitySeconds: number | null;
  /** `spec.loadBalancerSourceRanges` as written, with blanks and mistakes. The field overrides the legacy annotation. */
  readonly sourceRanges: readonly string[];
  readonly externalTrafficPolicy: string;
  /** `spec.trafficDistribution` as written, because newer versions of Kubernetes may add values. Unknown values are ignored. */
  readonly trafficDistribution: string | null;
  readonly publishNotReadyAddresses: boolean;
  readonly ipFamilies: readonly string[];
  /**
   * Addresses in status.loadBalancer.ingress that Weir has written. If the allocations are lost, Services with a published address get
   * their ports before Services without one.
   */
  readonly publishedIPs: readonly string[];
  /** Since when the status has shown the reason NoProxy, in milliseconds since the epoch. Absent if the status does not show it. */
  readonly noProxySince?: number;
  readonly deleting: boolean;
}

export interface SliceObject extends NamespacedMeta {
  readonly serviceName: string;
  readonly addressType: string;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly SliceEndpoint[];
}

export interface SlicePort {
  readonly name: string | null;
  readonly port: number | null;
  readonly protocol: string;
}

/** One endpoint of an EndpointSlice. An absent condition gets the default of the API: ready and serving are true, terminating is false. */
export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly zone: string | null;
  /** The zones of `hints.forZones`, without duplicates; absent if the slice has no hints. */
  readonly hintedZones?: readonly string[];
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
}

export interface PodObject {
  readonly namespace: string;
  readonly name: string;
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
}

/** The ranges from which the API server assigns cluster IPs. */
export interface ServiceCidrObject {
  readonly name: string;
  readonly cidrs: readonly string[];
}

/**
 * The parts of a Secret that TLS needs. The source seals the private key for this fleet's proxies before adding the Secret to a snapshot.
 */
export interface SecretObject {
  readonly namespace: string;
  readonly name: string;
  /** From `tls.crt` and `tls.key`; null if the Secret has neither. */
  readonly certificate: CertificatePair | UnusableObject | null;
  /** From `ca.crt`; null if the Secret has none. */
  readonly authorities: ClientAuthorities | UnusableObject | null;
}

export interface CertificatePair {
  readonly kind: 'good';
  /** PEM: the server's certificate first, then the intermediate certificates in order. */
  readonly chain: string;
  /** SHA-256 of the public key (SubjectPublicKeyInfo, DER), base64url. Identifies the matching private key. */
  readonly keyDigest: string;
  /** The private key (PEM), sealed by `Sealer` of `@weir/runtime` with `keyDigest` as additional data. */
  readonly sealedKey: string;
  /**
   * The period from `notBefore` to `notAfter` (milliseconds since the epoch) is the time in which both the server's certificate and the
   * certificate of its issuer are valid.
   */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Absent if the Secret has no usable OCSP response. */
  readonly ocsp?: OcspResponse;
}

/** A response of a certificate authority that says that a certificate is not revoked (RFC 6960). */
export interface OcspResponse {
  /** DER in base64. */
  readonly response: string;
  /** The response can be used from `thisUpdate` until before `nextUpdate`, in milliseconds since the epoch. */
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

export interface ClientAuthorities {
  readonly kind: 'good';
  /** PEM of all CAs whose client certificates are accepted. */
  readonly certificates: string;
}

/** The parts of a ConfigMap that Weir reads. */
export interface ConfigMapObject {
  readonly namespace: string;
  readonly name: string;
  /** From `ca.crt`; null if the ConfigMap has none. */
  readonly authorities: ClientAuthorities | UnusableObject | null;
  readonly errorPages: { readonly kind: 'good'; readonly pages: ErrorPages } | UnusableObject;
}

/**
 * The bodies of error pages, by name and sorted by name: a status code (`503`), a class of status codes (`5xx`) or `default`, and the format
 * (`.html`, `.json`, `.txt`).
 */
export type ErrorPages = Readonly<Record<string, string>>;

/**
 * `why` continues a sentence that begins with the Secret or the ConfigMap: `has a tls.key that does not belong to its tls.crt`.
 */
export interface UnusableObject {
  readonly kind: 'unusable';
  readonly why: string;
}

/** `early`: not yet valid. `expiring`: due for renewal. */
export type CertificateValidity = 'early' | 'expiring' | 'expired';

export interface TenantPolicyObject extends ObjectMeta {
  readonly spec: TenantPolicySpec;
}

export interface SuspensionObject extends ObjectMeta {
  readonly target: SuspensionTarget;
  readonly message: string;
  /** Milliseconds since the epoch; null if the suspension holds until it is deleted. */
  readonly until: number | null;
  /** The TenantPolicy rule that created the Suspension; null if a person did. */
  readonly rule: string | null;
  /** The user who made the Suspension; null if the user is not known. */
  readonly madeBy: string | null;
}

export type SuspensionTarget =
  | { readonly kind: 'tenant'; readonly tenant: string }
  | { readonly kind: 'namespace'; readonly namespace: string }
  | { readonly kind: 'service'; readonly namespace: string; readonly service: string };
