/** Whether work failed only because it obeyed this signal: with its reason, or with what Node's own functions throw then. */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === 'AbortError'));
}
