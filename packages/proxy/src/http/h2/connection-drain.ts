import type { FrameOutput } from './frame-output.ts';
import { ERROR, FRAME, MAX_STREAM_ID } from './protocol.ts';
import type { StreamTable } from './stream-table.ts';

/** The payload of the PING that finds out when the peer has seen GOAWAY. */
const DRAIN_PING: Uint8Array = new TextEncoder().encode('draining');

export interface ConnectionDrainOptions {
  readonly isServer: boolean;
  readonly streams: StreamTable;
  readonly output: FrameOutput;
}

/** Drains a connection: sends GOAWAY, and lets open streams end. A server also serves requests that are on their way. */
export class ConnectionDrain {
  readonly #isServer: boolean;
  readonly #streams: StreamTable;
  readonly #output: FrameOutput;
  #hasBegun = false;

  constructor({ isServer, streams, output }: ConnectionDrainOptions) {
    this.#isServer = isServer;
    this.#streams = streams;
    this.#output = output;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  begin(): void {
    this.#hasBegun = true;
    if (this.#isServer) {
      // RFC 9113 §6.8: the first GOAWAY announces the end; the second, after a round trip, names the last stream.
      this.#output.goaway(MAX_STREAM_ID, ERROR.none);
      this.#output.frame(FRAME.ping, 0, 0, DRAIN_PING);
    } else {
      this.#output.goaway(0, ERROR.none);
      this.#streams.lastAcceptedId = 0;
    }
  }

  /** Must be called when the peer has answered a PING. */
  onPong(): void {
    if (!this.#hasBegun || this.#streams.lastAcceptedId !== MAX_STREAM_ID) return;
    this.#streams.lastAcceptedId = this.#streams.lastPeerId;
    this.#output.goaway(this.#streams.lastAcceptedId, ERROR.none);
  }

  /** Whether the last stream has ended. */
  get isComplete(): boolean {
    return this.#hasBegun && this.#streams.lastAcceptedId !== MAX_STREAM_ID && this.#streams.size === 0;
  }
}
