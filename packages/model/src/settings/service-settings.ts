// What a Service asks for, as the data plane reads it. Every field has a value: defaults are applied once, in translation.
export interface ServiceSettings {
  readonly algorithm: Algorithm;
  readonly affinity: Affinity;
  /** Endpoints of the proxy's own zone are taken while there are any that work. */
  readonly preferSameZone: boolean;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Of a UDP flow: there is no FIN that would end it. */
  readonly udpIdleTimeoutMs: number;
  /** How long connections to an endpoint that has left may go on. */
  readonly drainTimeoutMs: number;
  /** CIDRs in canonical text; empty: everybody. */
  readonly sourceRanges: readonly string[];
  /** What is sent to the endpoint before the client's first byte. */
  readonly proxyProtocol: 'v1' | 'v2' | null;
  readonly healthCheck: HealthCheck;
  readonly limits: ServiceLimits;
  /** Routed by the server name of the ClientHello, which is not decrypted. */
  readonly tlsPassthrough: boolean;
  /** TLS ends here; absent: nowhere. */
  readonly tls?: TlsTermination;
  /** Lower case, `*.` first for a wildcard; empty: every name, and clients that give none. */
  readonly hosts: readonly string[];
  /** The node pool that it asks for; null: its tenant's first. */
  readonly pool: string | null;
  /** How many nodes it asks for; null: as its tenant has it. */
  readonly nodes: number | null;
}

export interface TlsTermination {
  /** Of the same namespace, with certificate and private key. */
  readonly secret: string;
  /** Where it ends; never empty. */
  readonly ports: readonly TlsPort[];
  /** Of the same namespace, with the CAs of the certificates that clients must show; null: they need none. */
  readonly clientCaSecret: string | null;
}

export interface TlsPort {
  readonly port: number;
  /** What the endpoints speak, as ALPN names it (RFC 7301), the preferred one first; empty: nothing is agreed on. */
  readonly alpn: readonly string[];
}

export type Algorithm = 'least-connections' | 'round-robin' | 'random' | 'maglev' | 'first';
export type Affinity = { readonly kind: 'none' } | { readonly kind: 'client-ip'; readonly timeoutMs: number };
export type HealthCheck = { readonly kind: 'off' } | ({ readonly kind: 'tcp' } & HealthCheckTiming) | HttpHealthCheck;

export interface HttpHealthCheck extends HealthCheckTiming {
  readonly kind: 'http';
  readonly path: string;
  /**
   * `https`. The endpoint's certificate is not verified: a check asks whether it answers, not who it is. No kind of its own: a proxy
   * of an earlier version, which would not understand that, asks without TLS, which no endpoint passes, and so uses all.
   */
  readonly overTls?: true;
}

export interface HealthCheckTiming {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** So many good answers in a row bring an endpoint back. */
  readonly healthyThreshold: number;
  /** So many bad ones take it out. */
  readonly unhealthyThreshold: number;
  /** How long connections to an endpoint that is out may go on while another one works; absent: as long as they like. */
  readonly drainTimeoutMs?: number;
}

/** On each proxy; null: no limit. They only tighten what the tenant has. */
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

/** Of a health check that an annotation asks for without saying how. */
export const DEFAULT_HEALTH_TIMING: HealthCheckTiming = {
  intervalMs: 5_000,
  timeoutMs: 2_000,
  healthyThreshold: 1,
  unhealthyThreshold: 3,
};

/** Of every annotation of a Service that is meant for Weir. */
export const ANNOTATION_PREFIX = 'weir.dev/';
