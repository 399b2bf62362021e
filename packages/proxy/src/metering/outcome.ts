/**
 * The reasons of `weir_service_refused_total`: outcomes of connections that ended before a byte was relayed. `cut-off`
 * also counts connections that were open.
 */
export const REFUSAL_OUTCOMES = [
  /** The connection arrived while its listener was being closed. */
  'no-listener',
  'no-endpoints',
  'source-range',
  /** The process has hardly any descriptors left, or the tenant has used its share of them. */
  'no-descriptors',
  /** The tenant or the Service (`connection-limit`) or the client (`client-limit`) has too many open connections. */
  'connection-limit',
  'client-limit',
  /** The tenant or the Service opens too many connections per second. */
  'rate-limit',
  /** A connection from a trusted load balancer began without a valid PROXY header. */
  'bad-proxy-header',
  /** The connection did not begin with a valid TLS ClientHello. */
  'bad-client-hello',
  /** The server name of the ClientHello is not a host of the Service. */
  'unknown-host',
  /** TLS is terminated here, and this proxy has no usable certificate. */
  'no-certificate',
  /** The handshake of terminated TLS failed (version, cipher, ALPN, client certificate), or the client left. */
  'tls-handshake-failed',
  /**
   * `prelude-timeout`: the PROXY header, ClientHello or rest of the handshake did not arrive in time, or too many newer
   * connections were pending. `prelude-incomplete`: the client closed before.
   */
  'prelude-timeout',
  'prelude-incomplete',
  /** The client reset the connection before it was accepted; its address is unknown. */
  'client-gone',
  /** Every tried endpoint refused the connection, or this host could not open one (no descriptor, no local port). */
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
  /** Still open at the end of the drain of this proxy or of an endpoint that was removed or failed its check. */
  'drained',
  /** An idle UDP flow was closed for a new flow, because its client or tenant had reached its limit. */
  'evicted',
  /** The listener of a UDP flow was closed or given to another Service. */
  'listener-closed',
  /** A bug in the proxy. */
  'internal',
] as const;

/** How a connection ended. Every connection ends with exactly one outcome, which is counted. */
export type Outcome = (typeof REFUSAL_OUTCOMES)[number] | (typeof OTHER_OUTCOMES)[number];
export const OUTCOMES: readonly Outcome[] = [...REFUSAL_OUTCOMES, ...OTHER_OUTCOMES];
