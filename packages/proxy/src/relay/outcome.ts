/** How a connection ended. Every connection has exactly one, and each is counted. */
export const OUTCOMES = [
  /** FIN both ways. */
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  /** Nowhere to go: it arrived while its listener was being closed. */
  'no-listener',
  'no-endpoints',
  'source-range',
  /** Every endpoint that was tried refused, or the machine could not connect (descriptors, ports). */
  'connect-failed',
  'connect-timeout',
  'idle-timeout',
  /** A Suspension. */
  'cut-off',
  /** Still open when the drain of this proxy was over. */
  'drained',
  /** A bug in here. */
  'internal',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Those that ended before a byte was relayed: `weir_service_refused_total{reason}`. */
export const REFUSALS: readonly Outcome[] = [
  'no-listener',
  'no-endpoints',
  'source-range',
  'connect-failed',
  'connect-timeout',
  'cut-off',
];
