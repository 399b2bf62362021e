/** How a connection ended, as seen by its client. */
export type ClientOutcome =
  /** Client and proxy sent FIN after the complete script. If the endpoint is an echo, every byte came back. */
  | 'clean'
  /** The client ended the connection by RST or with unread bytes. */
  | 'aborted'
  /** The proxy sent RST. */
  | 'reset'
  /** The proxy sent FIN before the end of the script, for example after a TLS alert. */
  | 'closed-early'
  /** The client waited longer than any timeout of the proxy. */
  | 'timed-out'
  /** The client received a wrong byte. */
  | 'corrupted';

export type ClientResult = {
  readonly outcome: ClientOutcome;
  /** Upper bound of the bytes that the kernel accepted. Excludes the bytes of PROXY headers, because the proxy consumes them. */
  readonly sent: number;
  readonly read: number;
};

/** Totals of all clients of a Service. */
export type ClientTotals = {
  established: number;
  /** Number of failed connection attempts. */
  connectFailures: number;
  clientOutcomes: Record<ClientOutcome, number>;
  /** Bytes that clients with the outcome `clean` sent; `cleanRead`: bytes that they read. */
  cleanSent: number;
  cleanRead: number;
  /** Bytes that clients with any other outcome sent; `otherRead`: bytes that they read. */
  otherSent: number;
  otherRead: number;
  /** Number of connections that were reset without a byte while listeners or workers closed. The proxy may not have accepted them. */
  possiblyUnseen: number;
};

export function emptyClientTotals(): ClientTotals {
  const clientOutcomes = { clean: 0, aborted: 0, reset: 0, 'closed-early': 0, 'timed-out': 0, corrupted: 0 };
  return {
    established: 0,
    connectFailures: 0,
    clientOutcomes,
    cleanSent: 0,
    cleanRead: 0,
    otherSent: 0,
    otherRead: 0,
    possiblyUnseen: 0,
  };
}

export function addClientResult(
  totals: ClientTotals,
  { outcome, sent, read }: ClientResult,
  { isDisturbed }: { readonly isDisturbed: boolean },
): void {
  totals.clientOutcomes[outcome]++;
  if (outcome === 'clean') {
    totals.cleanSent += sent;
    totals.cleanRead += read;
    return;
  }
  totals.otherSent += sent;
  totals.otherRead += read;
  if (isDisturbed && read === 0 && outcome !== 'timed-out') totals.possiblyUnseen++;
}
