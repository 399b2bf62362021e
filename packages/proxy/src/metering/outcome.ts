/**
 * `weir_service_refused_total{reason}`: connections that ended before a byte was relayed, and for `cut-off` those that were
 * open, too.
 */
export const REFUSAL_OUTCOMES = [
  /** Nowhere to go: it arrived while its listener was being closed. */
  'no-listener',
  'no-endpoints',
  'source-range',
  /** This process has hardly a descriptor left, or none beyond the share that its tenant may have of them. */
  'no-descriptors',
  /** The tenant or the Service has as many open as it may have, or its client has. */
  'connection-limit',
  'client-limit',
  /** The tenant opens more per second than it may. */
  'rate-limit',
  /** It came from a trusted load balancer and did not begin with a PROXY header, or with a bad one. */
  'bad-proxy-header',
  /** No TLS, or no ClientHello that could be read. */
  'bad-client-hello',
  /** The server name of its ClientHello is none of the Service's. */
  'unknown-host',
  /** TLS ends here, and this proxy has no certificate for it that it can use. */
  'no-certificate',
  /** TLS ends here, and client and proxy did not come to terms: version, cipher, ALPN, the client's certificate; or it left. */
  'tls-handshake-failed',
  /** PROXY header, ClientHello or the rest of the handshake did not come in time (at a shared port: before many others came), or the client closed before. */
  'prelude-timeout',
  'prelude-incomplete',
  /** It had reset before it was taken, and nobody can be asked any more who it was. */
  'client-gone',
  /** Every endpoint that was tried refused, or the machine could not connect (descriptors, ports). */
  'connect-failed',
  'connect-timeout',
  /** A Suspension. */
  'cut-off',
] as const;

const OTHER_OUTCOMES = [
  /** FIN both ways. */
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'idle-timeout',
  /** Still open when the drain of this proxy, or of an endpoint that had left or failed its check, was over. */
  'drained',
  /** A UDP flow that had been silent for long made room for a new one, under the cap of its client or tenant. */
  'evicted',
  /** A UDP flow whose listener was closed or became another Service's. */
  'listener-closed',
  /** A bug in here. */
  'internal',
] as const;

/** How a connection ended. Every connection has exactly one, and each is counted. */
export type Outcome = (typeof REFUSAL_OUTCOMES)[number] | (typeof OTHER_OUTCOMES)[number];
export const OUTCOMES: readonly Outcome[] = [...REFUSAL_OUTCOMES, ...OTHER_OUTCOMES];
