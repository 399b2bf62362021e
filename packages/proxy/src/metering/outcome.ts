/**
 * The reasons of `weir_service_refused_total`: outcomes of connections that ended before a byte was relayed. `cut-off`
 * also counts open connections that a suspension ended.
 */
export const REFUSAL_OUTCOMES = [
  /** The connection arrived while its listener was being closed. */
  'no-listener',
  'no-endpoints',
  'source-range',
  /** The process has hardly any descriptors left, or the tenant has used up its share of them. */
  'no-descriptors',
  /**
   * `connection-limit`: the tenant or the Service has too many open connections. `client-limit`: the client has too
   * many open connections to the Service, or opens too many per second.
   */
  'connection-limit',
  'client-limit',
  /**
   * The source of a UDP datagram is a UDP port that this proxy serves, so the source is forged. The answer would reach
   * this proxy as a new datagram, and its answer again, without end.
   */
  'forged-source',
  /**
   * Clients of the tenant or the Service open too many connections or flows, or send too many ClientHellos, per second.
   * Or too many TLS handshakes of the tenant wait.
   */
  'rate-limit',
  /** A connection from a trusted load balancer began without a valid PROXY header. */
  'bad-proxy-header',
  /** The connection did not begin with a valid TLS ClientHello. */
  'bad-client-hello',
  /** The connection to a shared listener did not begin with a valid HTTP request. */
  'bad-request',
  /** The server name of the ClientHello, or the host of the first request, is not a host of the Service. */
  'unknown-host',
  /** This proxy terminates TLS for the Service but has no usable certificate. */
  'no-certificate',
  /**
   * The TLS handshake with the client failed (version, cipher, ALPN, client certificate), or the client left during the
   * handshake.
   */
  'tls-handshake-failed',
  /**
   * `prelude-timeout`: the PROXY header, the ClientHello, the rest of the TLS handshake or the first HTTP request did
   * not arrive in time, or too many newer connections were pending. `prelude-incomplete`: the client closed the
   * connection before the proxy had received this data.
   */
  'prelude-timeout',
  'prelude-incomplete',
  /** The client reset the connection before the proxy accepted it, so the client's address is unknown. */
  'client-gone',
  /**
   * Every endpoint that was tried refused the connection, or this host could not open a connection because it had no
   * free descriptor or local port, for example.
   */
  'connect-failed',
  'connect-timeout',
  /** The Service or its tenant is suspended. */
  'cut-off',
] as const;

const OTHER_OUTCOMES = [
  /** Both sides have sent FIN. */
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'idle-timeout',
  /** The answer to a request began, but was not complete within the request timeout of the Service. */
  'response-timeout',
  /**
   * The connection was still open when a drain ended. The proxy, a removed endpoint, or an endpoint that failed its
   * health check was being drained.
   */
  'drained',
  /**
   * The least recently active UDP flow of a client or tenant was closed for a new flow, because the client or tenant
   * had reached its limit.
   */
  'evicted',
  /** The listener of a UDP flow was closed or given to another Service. */
  'listener-closed',
  /** The connection ended because of a bug in the proxy, or because its worker ended. */
  'internal',
] as const;

/**
 * Why the proxy answered an HTTP request itself. `weir_service_refused_total` counts these answers too. A reason that is
 * also an outcome of connections has the same meaning there.
 */
export const REQUEST_REFUSALS = [
  'invalid-request',
  'forbidden',
  'suspended',
  'no-route',
  /** The backend of the request cannot be used, or all backends of the HTTP route have the weight 0. */
  'no-backend',
  'request-timeout',
  'body-too-large',
  'target-too-long',
  'unknown-expectation',
  'misdirected-request',
  'too-many-requests',
  /** `client-limit`, `rate-limit`: connection limits of a Service that gets a request on a connection of another Service. */
  'client-limit',
  'rate-limit',
  'head-too-large',
  'not-implemented',
  'connect-failed',
  /** The endpoint closed the connection before its answer. */
  'endpoint-failed',
  /** As `connect-failed` or `endpoint-failed`, but the Service has no retry left (`RetryBudget`). */
  'retry-limit',
  'invalid-response',
  'no-endpoints',
  /** Every endpoint that was tried has its maximum number of connections or, with HTTP/2, of requests. */
  'overloaded',
  /** `connection-limit`, `no-descriptors`: as `client-limit`, for a request on a connection of another Service. */
  'connection-limit',
  'no-descriptors',
  'connect-timeout',
  'endpoint-timeout',
  'unsupported-version',
] as const;
export type RequestRefusal = (typeof REQUEST_REFUSALS)[number];

/** How a connection ended. Every connection ends with exactly one outcome, and the outcome is counted. */
export type Outcome = (typeof REFUSAL_OUTCOMES)[number] | (typeof OTHER_OUTCOMES)[number];
export const OUTCOMES: readonly Outcome[] = [...REFUSAL_OUTCOMES, ...OTHER_OUTCOMES];

/**
 * The first request of an HTTP connection. `late`: it did not arrive in time. `invalid`: it was refused with an answer.
 */
export type FirstRequest = 'missing' | 'late' | 'invalid' | 'valid';

/**
 * Returns the outcome with which an HTTP connection is counted. A client that leaves before its first request, such as
 * a port scan, counts as refused.
 */
export function outcomeOfHttp(outcome: Outcome, first: FirstRequest): Outcome {
  if (first === 'valid' || first === 'invalid' || !ENDS_OF_CLIENTS.has(outcome)) return outcome;
  return first === 'late' ? 'prelude-timeout' : 'prelude-incomplete';
}

const ENDS_OF_CLIENTS: ReadonlySet<Outcome> = new Set(['completed', 'reset-by-client', 'idle-timeout']);
const REFUSALS: ReadonlySet<string> = new Set(REFUSAL_OUTCOMES);

/** Reports whether `weir_service_refused_total` counts the outcome. */
export function isRefusal(outcome: Outcome): boolean {
  return REFUSALS.has(outcome);
}
