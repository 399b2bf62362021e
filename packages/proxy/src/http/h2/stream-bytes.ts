import type { LoggedRequest } from '../../access-log/access-log.ts';
import { addToCounter, RECEIVED, SENT } from '../../metering/counters.ts';
import type { Http2Stream } from './stream.ts';

/** Counts the bytes of one HTTP/2 stream: for the counters of its Service, for the bandwidth limits and for the access log. */
export class StreamBytes {
  readonly #stream: Http2Stream;
  #countedReceived = 0;
  #countedSent = 0;
  /** How many bytes of the response were charged to the bandwidth limits. */
  #chargedSent = 0;

  constructor(stream: Http2Stream) {
    this.#stream = stream;
  }

  /** Adds what was not counted yet. */
  count(counters: Float64Array): void {
    const { receivedBytes, sentBytes } = this.#stream;
    addToCounter(counters, RECEIVED, receivedBytes - this.#countedReceived);
    addToCounter(counters, SENT, sentBytes - this.#countedSent);
    this.#countedReceived = receivedBytes;
    this.#countedSent = sentBytes;
  }

  /** Returns how many bytes were sent since the last call. */
  takeUncharged(): number {
    const { sentBytes } = this.#stream;
    const bytes = sentBytes - this.#chargedSent;
    this.#chargedSent = sentBytes;
    return bytes;
  }

  writeTo(logged: LoggedRequest): void {
    logged.receivedBytes = this.#stream.receivedBytes;
    logged.sentBytes = this.#stream.sentBytes;
  }
}
