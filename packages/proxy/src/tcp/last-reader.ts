/** The stream of this worker that has read last, of whatever kind: who finds itself here has been alone since its last read. */
export const lastReader: { stream: unknown } = { stream: undefined };
