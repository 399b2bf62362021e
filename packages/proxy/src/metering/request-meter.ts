import {
  addToCounter,
  CODE_CLASS_COLUMNS,
  codeClassColumn,
  countDuration,
  ENDPOINT_DURATION,
  REQUEST_DURATION,
} from './counters.ts';

const NONE = codeClassColumn('none');
const SUCCESS = codeClassColumn('2xx');

/**
 * Counts the requests of one connection, one after the other, by the class of the status code that the client received,
 * and their durations. Times are in milliseconds of `Turns.nowMs`. Each request is counted once: when the head of its
 * answer is sent, or when the request ends without an answer.
 */
export class RequestMeter {
  /** The counters of the open request's Service. Undefined if no request is open. */
  #row: Float64Array | undefined;
  #startedAt = 0;
  #isAnswered = false;

  /** Begins a request of the Service with these counters. The request's head has been read. */
  begin(row: Float64Array, now: number): void {
    this.#row = row;
    this.#startedAt = now;
    this.#isAnswered = false;
  }

  /**
   * Counts the final answer of an endpoint that received the request at `sentAt`. A 101 ends the request, because all
   * further bytes belong to another protocol.
   */
  relayAnswer(status: number, sentAt: number, now: number): void {
    const row = this.#row;
    if (row === undefined || this.#isAnswered) return;
    this.#isAnswered = true;
    addToCounter(row, columnOf(status), 1);
    // An endpoint may answer before it receives anything. `sentAt` is then NaN.
    countDuration(row, ENDPOINT_DURATION, now > sentAt ? now - sentAt : 0);
    if (status < 200) this.complete(now);
  }

  /**
   * Counts an answer of the proxy itself. `row` counts the answer if no request is open, because the head was not
   * valid.
   */
  answer(status: number, row: Float64Array, now: number): void {
    addToCounter(this.#row ?? row, columnOf(status), 1);
    this.#isAnswered = true;
    this.complete(now);
  }

  /** Ends the request, whose answer is complete. */
  complete(now: number): void {
    if (this.#row !== undefined) countDuration(this.#row, REQUEST_DURATION, now - this.#startedAt);
    this.#row = undefined;
  }

  /** Ends the open request, if any, because its connection ends. */
  abandon(): void {
    if (this.#row !== undefined && !this.#isAnswered) addToCounter(this.#row, NONE, 1);
    this.#row = undefined;
  }
}

/** Returns the column of a status. 101 counts as a success. */
function columnOf(status: number): number {
  if (status < 300) return SUCCESS;
  // RFC 9110 §15: a client treats a status above 599 as a 5xx.
  return CODE_CLASS_COLUMNS[Math.min(Math.floor(status / 100), 5) - 2] as number;
}
