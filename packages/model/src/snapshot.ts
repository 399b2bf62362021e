import { type TenantPolicySpec, UNRESTRICTED_POLICY } from './policy.ts';
import type { PortRange } from './port-range.ts';
import type { Problem } from './problem.ts';

// What the cluster (or a directory of manifests) says, projected to the fields that Weir reads.
// A source builds it sorted by namespace and name and freezes it; everything that decides starts from it.
export interface Snapshot {
  readonly settings: FleetSettings;
  readonly namespaces: readonly NamespaceObject[];
  readonly nodes: readonly NodeObject[];
  readonly services: readonly ServiceObject[];
  readonly slices: readonly SliceObject[];
  /** Empty where the source trusts its files. */
  readonly pods: readonly PodObject[];
  /** Absent where the source knows of none: then the settings alone tell. */
  readonly serviceCidrs?: readonly ServiceCidrObject[];
  readonly policies: readonly TenantPolicyObject[];
  readonly suspensions: readonly SuspensionObject[];
  /** Those that Services may name as their certificate or client CA; absent: none are read. */
  readonly secrets?: readonly SecretObject[];
  /** Where Secrets could not be read although they may be (a right is missing); absent: nowhere. */
  readonly unreadSecrets?: 'everywhere' | ReadonlySet<string>;
  /** Of certificates whose time is not now, or is soon over, by `secretPath`; absent: of none. */
  readonly validity?: ReadonlyMap<string, CertificateValidity>;
  /** What the source itself could not take: unreadable files, invalid documents, kinds it may not list. */
  readonly problems: readonly Problem[];
  /** Nodes whose proxy does not answer, by name; left out: none, or nobody has listened. */
  readonly unreachableNodes?: ReadonlyMap<string, NodeUnreachability>;
}

/** Silent: nothing new is put there. Lost: it has been so for long, and others take its place where there is room. */
export type NodeUnreachability = 'silent' | 'lost';

export interface FleetSettings {
  readonly loadBalancerClass: string;
  /** Take Services that name no class, too. */
  readonly classless: boolean;
  /** For namespaces that no TenantPolicy selects. */
  readonly defaultPolicy: TenantPolicySpec;
  /** TCP and UDP ports that the nodes need, beside those of Kubernetes and Weir, which are always reserved. */
  readonly reservedPorts: readonly PortRange[];
  /** TCP ports that many Services have together, by their host names. */
  readonly sharedPorts: readonly number[];
  /** How many nodes a Service gets when neither it nor its TenantPolicy says. */
  readonly nodesPerService: number;
  readonly trust: EndpointTrust;
  /** Absent: none are read. */
  readonly secretAccess?: SecretAccess;
}

/** Whose Secrets this fleet may read: the chart's `tls.secretAccess`. */
export type SecretAccess =
  | { readonly kind: 'none' }
  | { readonly kind: 'namespaces'; readonly namespaces: readonly string[] }
  | { readonly kind: 'cluster' };

/** Whom endpoint addresses are believed from: ARCHITECTURE, "Endpoints are the cluster's trust boundary". */
export type EndpointTrust =
  | { readonly kind: 'files' }
  | { readonly kind: 'pods'; readonly serviceCidrs: readonly string[] };

export interface ObjectMeta {
  readonly uid: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch; null where the source knows no time. */
  readonly createdAt: number | null;
}

export interface NamespacedMeta extends ObjectMeta {
  readonly namespace: string;
}

export type NamespaceObject = ObjectMeta;

export interface NodeObject extends ObjectMeta {
  readonly internalIPs: readonly string[];
  readonly externalIPs: readonly string[];
  /** Cordoned: what is served there goes on, and nothing new comes. */
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
  /** Cluster IPs of its own; absent: none. */
  readonly clusterIPs?: readonly string[];
  /** Seconds; null without ClientIP affinity. */
  readonly clientIpAffinitySeconds: number | null;
  /** As written, blanks and mistakes included; the field wins over the legacy annotation. */
  readonly sourceRanges: readonly string[];
  readonly externalTrafficPolicy: string;
  /** As written: it is a wish, and newer clusters know more of them. */
  readonly trafficDistribution: string | null;
  readonly publishNotReadyAddresses: boolean;
  readonly ipFamilies: readonly string[];
  /** Addresses in status.loadBalancer.ingress: who was published owns its ports when everything else is lost. */
  readonly publishedIPs: readonly string[];
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

/** Conditions as the API reads them when absent: ready and serving true, terminating false. */
export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly zone: string | null;
  /** For the clients of which zones it is meant (`hints.forZones`), each once; absent: no hint says. */
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

/** Ranges that the API server takes cluster IPs from. */
export interface ServiceCidrObject {
  readonly name: string;
  readonly cidrs: readonly string[];
}

/** A Secret as far as TLS needs it. What is private in it is sealed for the proxies of this fleet before it comes here. */
export interface SecretObject {
  readonly namespace: string;
  readonly name: string;
  /** Of `tls.crt` and `tls.key`; null: it has neither. */
  readonly certificate: CertificatePair | UnusableSecret | null;
  /** Of `ca.crt`; null: it has none. */
  readonly authorities: ClientAuthorities | UnusableSecret | null;
}

export interface CertificatePair {
  readonly kind: 'good';
  /** PEM, the certificate of the server first, then those that lead from it to its CA. */
  readonly chain: string;
  /** SHA-256 of the public key (SubjectPublicKeyInfo, DER), base64url: tells which private key belongs to it. */
  readonly keyDigest: string;
  /** The private key (PEM) as `Sealer` of `@weir/runtime` seals it about `keyDigest`. */
  readonly sealedKey: string;
  /** Milliseconds since the epoch: since when, and until when, both the certificate of the server and that of its issuer are good. */
  readonly notBefore: number;
  readonly notAfter: number;
}

export interface ClientAuthorities {
  readonly kind: 'good';
  /** PEM of all CAs that may have issued the certificate of a client. */
  readonly certificates: string;
}

/** `why` goes on after the name of the Secret: `has a tls.key that does not belong to its tls.crt`. */
export interface UnusableSecret {
  readonly kind: 'unusable';
  readonly why: string;
}

/** Early: it begins later. Expiring: it is to be renewed. */
export type CertificateValidity = 'early' | 'expiring' | 'expired';

export interface TenantPolicyObject extends ObjectMeta {
  readonly spec: TenantPolicySpec;
}

export interface SuspensionObject extends ObjectMeta {
  readonly target: SuspensionTarget;
  readonly message: string;
  /** Milliseconds since the epoch; null: until deleted. */
  readonly until: number | null;
  /** The rule that made it; null: a person. */
  readonly rule: string | null;
}

export type SuspensionTarget =
  | { readonly kind: 'tenant'; readonly tenant: string }
  | { readonly kind: 'namespace'; readonly namespace: string }
  | { readonly kind: 'service'; readonly namespace: string; readonly service: string };

export const DEFAULT_FLEET_SETTINGS: FleetSettings = {
  loadBalancerClass: 'weir.dev/weir',
  classless: false,
  defaultPolicy: UNRESTRICTED_POLICY,
  reservedPorts: [],
  sharedPorts: [],
  nodesPerService: 2,
  trust: { kind: 'files' },
};
