// The settings of a Service, as the data plane reads them. Translation applies the defaults, so every field has a value.
export interface ServiceSettings {
  readonly algorithm: Algorithm;
  readonly affinity: Affinity;
  /** Prefer endpoints of the proxy's own zone while at least one of them is healthy. */
  readonly preferSameZone: boolean;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** The idle timeout of UDP flows, which have no FIN that would end them. */
  readonly udpIdleTimeoutMs: number;
  /** How long connections to an endpoint that left the Service may go on. */
  readonly drainTimeoutMs: number;
  /** CIDRs in canonical text; an empty list admits every client. */
  readonly sourceRanges: readonly string[];
  /** The version of the PROXY header that the proxy sends to the endpoint before the client's first byte; null for none. */
  readonly proxyProtocol: 'v1' | 'v2' | null;
  readonly healthCheck: HealthCheckSettings;
  readonly limits: ServiceLimits;
  /** Route by the server name of the ClientHello, without decrypting. */
  readonly tlsPassthrough: boolean;
  /** Absent if TLS is not terminated here. */
  readonly tls?: TlsTermination;
  /** Lower case, with a leading `*.` for a wildcard. An empty list matches every server name, and clients that send none. */
  readonly hosts: readonly string[];
  /** The requested node pool; null for the first pool of the tenant. */
  readonly pool: string | null;
  /** The requested number of nodes; null for the tenant's number. */
  readonly nodes: number | null;
}

export interface TlsTermination {
  /** Name of the Secret, in the Service's namespace, that holds certificate and private key. */
  readonly secret: string;
  /** The ports at which TLS is terminated; never empty. */
  readonly ports: readonly TlsPort[];
  /** Name of the Secret, in the Service's namespace, that holds the CAs of client certificates; null if clients need none. */
  readonly clientCaSecret: string | null;
}

export interface TlsPort {
  readonly port: number;
  /** ALPN names (RFC 7301) of the protocols that the endpoints speak, preferred first. Empty if no ALPN is negotiated. */
  readonly alpn: readonly string[];
}

export type Algorithm = 'least-connections' | 'round-robin' | 'random' | 'maglev' | 'first';
export type Affinity = { readonly kind: 'none' } | { readonly kind: 'client-ip'; readonly timeoutMs: number };
export type HealthCheckSettings =
  | { readonly kind: 'off' }
  | ({ readonly kind: 'tcp' } & HealthCheckTiming)
  | HttpHealthCheck;

export interface HttpHealthCheck extends HealthCheckTiming {
  readonly kind: 'http';
  readonly path: string;
  /**
   * Check over HTTPS, without verifying the endpoint's certificate: the check asks whether the endpoint answers, not for its
   * identity. This is a field and not a kind, so that a proxy of an earlier version still decodes the settings: that proxy checks
   * without TLS, finds all endpoints failing, and therefore uses all of them.
   */
  readonly overTls?: true;
}

export interface HealthCheckTiming {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Consecutive good results after which a failing endpoint passes. */
  readonly healthyThreshold: number;
  /** Consecutive bad results after which a passing endpoint fails. */
  readonly unhealthyThreshold: number;
  /** How long connections to a failing endpoint may go on while another endpoint works; absent for no limit. */
  readonly drainTimeoutMs?: number;
}

/** Limits on each proxy, in addition to the tenant's limits; null for no limit. */
export interface ServiceLimits {
  readonly connections: number | null;
  readonly connectionsPerClient: number | null;
  readonly inBitsPerSecond: number | null;
  readonly outBitsPerSecond: number | null;
}

export const DEFAULT_SERVICE_SETTINGS: ServiceSettings = {
  algorithm: 'least-connections',
  affinity: { kind: 'none' },
  preferSameZone: false,
  connectTimeoutMs: 5_000,
  idleTimeoutMs: 600_000,
  udpIdleTimeoutMs: 60_000,
  drainTimeoutMs: 30_000,
  sourceRanges: [],
  proxyProtocol: null,
  healthCheck: { kind: 'off' },
  limits: { connections: null, connectionsPerClient: null, inBitsPerSecond: null, outBitsPerSecond: null },
  tlsPassthrough: false,
  hosts: [],
  pool: null,
  nodes: null,
};

/** The timing of a health check unless an annotation changes it. */
export const DEFAULT_HEALTH_TIMING: HealthCheckTiming = {
  intervalMs: 5_000,
  timeoutMs: 2_000,
  healthyThreshold: 1,
  unhealthyThreshold: 3,
};

/** The prefix of all annotations that Weir reads from a Service. */
export const ANNOTATION_PREFIX = 'weir.dev/';
