// The protocol between the generator of a datagram stream and the UDP server of `echo-process.ts`.

/** The size of all datagrams of a stream. The server counts them and does not answer. */
export const STREAM_DATAGRAM_BYTES = 1_200;
/** The size of the datagram that asks for the count. The server answers with the count in JSON, and starts again at 0. */
export const COUNT_REQUEST_BYTES = 1;

export type DatagramStreamReport = {
  readonly sent: number;
  readonly arrived: number;
  readonly ms: number;
  /** Number of bytes that the server received, with its answers and the questions for the counts. */
  readonly traffic: { readonly sentBytes: number; readonly receivedBytes: number };
};
