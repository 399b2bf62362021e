// The settings of a Service, as the data plane reads them. Translation applies the defaults, so every field has a value.
export interface ServiceSettings {
  readonly algorithm: Algorithm;
  readonly affinity: Affinity;
  /** Whether to prefer endpoints of the proxy's own zone while at least one of these endpoints is healthy. */
  readonly preferSameZone: boolean;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** The idle timeout of UDP flows, which have no FIN that would end them. */
  readonly udpIdleTimeoutMs: number;
  /** How long connections to an endpoint that left the Service may stay open. */
  readonly drainTimeoutMs: number;
  /** CIDRs in canonical text; an empty list admits every client. */
  readonly sourceRanges: readonly string[];
  /** The version of the PROXY header that the proxy sends to the endpoint before the client's first byte; null for none. */
  readonly proxyProtocol: 'v1' | 'v2' | null;
  readonly healthCheck: HealthCheckSettings;
  readonly limits: ServiceLimits;
  /** Whether to route by the server name of the ClientHello, without decrypting. */
  readonly tlsPassthrough: boolean;
  /** The TLS termination of the Service; absent if the proxies terminate no TLS. */
  readonly tls?: TlsTermination;
  /** The TCP ports at which the proxies relay HTTP requests, not bytes; absent if there are none. */
  readonly httpPorts?: readonly number[];
  /** The HTTP ports whose endpoints get HTTP/2 without TLS; absent if there are none. */
  readonly http2Ports?: readonly number[];
  /**
   * Lower case, with a leading `*.` for a wildcard. An empty list matches every server name or Host, and clients that send none. On a shared
   * port, several Services of a namespace may have the same host if each has another path prefix.
   */
  readonly hosts: readonly string[];
  /**
   * The path prefix of the requests that the Service gets at its HTTP ports, in the normal form of `parsePathAndQuery` and without a trailing
   * slash, such as `/api`. Absent for all paths.
   */
  readonly pathPrefix?: string;
  /** Present if the proxies remove the path prefix from requests before the endpoints get the requests. */
  readonly stripPrefix?: true;
  /** The most bytes that the body of a request may have; absent for no limit. */
  readonly maxBodyBytes?: number;
  /** The time from the first byte of a request to the last byte of its answer; absent for no limit. */
  readonly requestTimeoutMs?: number;
  /** Name of the cookie that binds a client to the endpoint of its first request; absent if the proxies set no cookie. */
  readonly stickyCookie?: string;
  /** Present if the proxies write an access log of the Service's HTTP requests, other connections and UDP flows. */
  readonly accessLog?: AccessLogSettings;
  /** Name of the ConfigMap, in the Service's namespace, that holds the error pages; absent for Weir's own pages. */
  readonly errorPages?: string;
  /** The requested node pool; null for the first pool of the tenant. */
  readonly pool: string | null;
  /** The requested number of nodes; null for the tenant's number. */
  readonly nodes: number | null;
}

export interface AccessLogSettings {
  /** How many of a million requests or connections are logged, chosen at random; 1,000,000 for all. */
  readonly requestsPerMillion: number;
  /** Present if the log contains query strings, which often contain secrets. */
  readonly hasQuery?: true;
}

export interface TlsTermination {
  /** Name of the first Secret, in the Service's namespace, that holds certificate and private key. */
  readonly secret: string;
  /** Names of the further Secrets with certificates, in the order of preference; absent if there are none. */
  readonly otherSecrets?: readonly string[];
  /** The ports at which TLS is terminated; never empty. */
  readonly ports: readonly TlsPort[];
  /** Name of the Secret, in the Service's namespace, that holds the CAs of client certificates; null if clients need none. */
  readonly clientCaSecret: string | null;
  /** The TLS port to which HTTP requests at port 80 are redirected; absent if they are relayed. */
  readonly httpsRedirectPort?: number;
  /** How long browsers use only HTTPS for a host (RFC 6797 §6.1.1), in seconds; absent if responses do not say so. */
  readonly hstsMaxAgeSeconds?: number;
  /** TLS between the proxies and the endpoints; absent if the endpoints of all TLS ports expect no TLS. */
  readonly backend?: BackendTls;
}

export interface BackendTls {
  /** Name of the Secret or ConfigMap, in the Service's namespace, that holds the CAs of the endpoints' certificates. */
  readonly caSecret: string;
  /** Name of the Secret with the certificate that the proxies show to the endpoints; absent if they show none. */
  readonly certificateSecret?: string;
  /** The name that each endpoint's certificate must have, and the server name that the proxies send. */
  readonly serverName: string;
  /** The TLS ports whose endpoints expect TLS; never empty. */
  readonly ports: readonly number[];
}

/** Returns the names of all Secrets with certificates for clients, in the order of preference. */
export function certificateSecretsOf({ secret, otherSecrets = [] }: TlsTermination): readonly string[] {
  return [secret, ...otherSecrets];
}

/** A Secret with a certificate and its private key. */
export interface KeySecret {
  readonly name: string;
  /** The place of the certificate's entry, see `certificateId`. */
  readonly position: number | 'endpoints';
}

/** Returns all Secrets whose private keys the proxies need: the result of `certificateSecretsOf`, then the Secret for the endpoints. */
export function keySecretsOf(tls: TlsTermination): readonly KeySecret[] {
  const secrets = certificateSecretsOf(tls).map((name, position): KeySecret => ({ name, position }));
  const name = tls.backend?.certificateSecret;
  return name === undefined ? secrets : [...secrets, { name, position: 'endpoints' }];
}

/** Returns the names of the ConfigMaps that the settings name. The CAs may be in a Secret of the same name. */
export function configMapsOf(settings: ServiceSettings | undefined): readonly string[] {
  return [settings?.errorPages ?? [], settings?.tls?.backend?.caSecret ?? []].flat();
}

export interface TlsPort {
  readonly port: number;
  /** ALPN names (RFC 7301) of the protocols that the endpoints speak, preferred first. Empty if no ALPN is negotiated. */
  readonly alpn: readonly string[];
}

export type Algorithm = 'least-connections' | 'round-robin' | 'random' | 'maglev' | 'first';
export type Affinity = { readonly kind: 'none' } | { readonly kind: 'client-ip'; readonly timeoutMs: number };
/** The values of the annotation `weir.dev/health-check`. */
export type HealthCheckName = 'off' | 'tcp' | 'http' | 'https' | 'grpc';
export type HealthCheckSettings = { readonly kind: 'off' } | TcpHealthCheck | HttpHealthCheck;

export interface TcpHealthCheck extends HealthCheckTiming {
  readonly kind: 'tcp';
  /**
   * Present for a gRPC check: the name of the service whose health the endpoint is asked for; empty for the health of the whole endpoint.
   * This is a field and not another `kind`, so that a proxy of an earlier version can still decode the settings. Such a proxy checks only
   * whether the endpoint accepts connections.
   */
  readonly grpcService?: string;
}

export interface HttpHealthCheck extends HealthCheckTiming {
  readonly kind: 'http';
  readonly path: string;
  /**
   * True for a check over HTTPS. The endpoint's certificate is not verified, because the check asks only whether the endpoint answers. This
   * is a field and not another `kind`, so that a proxy of an earlier version can still decode the settings. Such a proxy checks without
   * TLS, so all endpoints fail the check, and therefore the proxy uses all of them.
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
  /** How long connections to a failing endpoint may stay open while another endpoint works; absent for no limit. */
  readonly drainTimeoutMs?: number;
}

/** Limits of a Service on all proxies together, in addition to the limits of its tenant; null or absent means no limit. */
export interface ServiceLimits {
  readonly connections: number | null;
  /** Connections of one client on each proxy. */
  readonly connectionsPerClient: number | null;
  readonly inBitsPerSecond: number | null;
  readonly outBitsPerSecond: number | null;
  readonly newConnectionsPerSecond?: number;
  /** New connections of one client on each proxy. */
  readonly newConnectionsPerSecondPerClient?: number;
  /** HTTP requests. */
  readonly requestsPerSecond?: number;
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
