import type { FrameOutput } from './frame-output.ts';
import { ERROR, FRAME } from './protocol.ts';
import type { StreamTable } from './stream-table.ts';

/** The payload of the PING that shows when the client has seen a response. `DRAIN_PING` begins with another byte. */
const PING: Uint8Array = new TextEncoder().encode('answered');
/** How many streams wait for the answer to the PING. Further streams are reset at once. */
const MAX_WAITING_STREAMS = 100;

/**
 * The streams on which a server completes the response before the client completes the request. RFC 9113 §8.1: the
 * server may then stop the request by RST_STREAM with NO_ERROR. Some clients (curl 7.88) lose a response that they read
 * together with RST_STREAM, so RST_STREAM follows when the client has answered a PING that was sent after the response.
 */
export class EarlyEnds {
  readonly #streams: StreamTable;
  readonly #output: FrameOutput;
  /** The streams that ended before the PING that is on its way. */
  #waiting: number[] = [];
  /** The streams that ended after this PING. */
  #next: number[] = [];

  constructor(streams: StreamTable, output: FrameOutput) {
    this.#streams = streams;
    this.#output = output;
  }

  /** Stops the request of a stream, whose END_STREAM was written. */
  add(id: number): void {
    this.#streams.rememberReset(id);
    if (this.#waiting.length + this.#next.length >= MAX_WAITING_STREAMS) this.#reset(id);
    else if (this.#waiting.length > 0) this.#next.push(id);
    else {
      this.#waiting.push(id);
      this.#ping();
    }
  }

  /** Takes the acknowledgement of a PING. Returns false if it answers another PING. */
  takeAnswer(bytes: Uint8Array, start: number): boolean {
    if (bytes[start] !== PING[0]) return false;
    for (const id of this.#waiting) this.#reset(id);
    this.#waiting = this.#next;
    this.#next = [];
    if (this.#waiting.length > 0) this.#ping();
    return true;
  }

  #ping(): void {
    this.#output.frame(FRAME.ping, 0, 0, PING);
  }

  #reset(id: number): void {
    this.#output.number(FRAME.rstStream, id, ERROR.none);
  }
}
