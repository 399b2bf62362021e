/** How a connection ended for the client that had it. */
export type ClientOutcome =
  /** It said all that it wanted, and FIN went both ways; from an echo all came back. */
  | 'clean'
  /** It ended it itself, by RST or with bytes unread. */
  | 'left'
  /** RST. */
  | 'reset'
  /** FIN before it was due: a refusal with an alert, or the end of an endpoint. */
  | 'cut'
  /** Nothing happened for so long that it must be taken for a bug. */
  | 'stuck'
  /** A byte was not the one that was due. */
  | 'foreign';

export type ClientResult = {
  readonly end: ClientOutcome;
  /** Given to the kernel at the most, without what the proxy takes for itself. */
  readonly sent: number;
  readonly read: number;
};

/** What the clients of a Service know. */
export type ClientTotals = {
  established: number;
  /** The kernel said that nobody listens. */
  connectFailures: number;
  clientOutcomes: Record<ClientOutcome, number>;
  /** Of those that ended clean. */
  cleanSent: number;
  cleanRead: number;
  /** Of all others. */
  otherSent: number;
  otherRead: number;
  /** Reset without a byte while listeners or workers were being closed: perhaps the proxy never saw them. */
  possiblyUnseen: number;
};

export function emptyClientTotals(): ClientTotals {
  const clientOutcomes = { clean: 0, left: 0, reset: 0, cut: 0, stuck: 0, foreign: 0 };
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
  tally: ClientTotals,
  { end, sent, read }: ClientResult,
  { isDisturbed }: { readonly isDisturbed: boolean },
): void {
  tally.clientOutcomes[end]++;
  if (end === 'clean') {
    tally.cleanSent += sent;
    tally.cleanRead += read;
    return;
  }
  tally.otherSent += sent;
  tally.otherRead += read;
  if (isDisturbed && read === 0 && end !== 'stuck') tally.possiblyUnseen++;
}
