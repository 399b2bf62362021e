import { INITIAL_WINDOW_BYTES, MAX_STREAM_ID } from './protocol.ts';
import { type Http2Stream, returnStream, takeStream } from './stream.ts';

/** How many resets are remembered. A peer may have sent frames for a stream before it receives the reset. */
const REMEMBERED_RESETS = 128;

/** The streams of one connection (RFC 9113 §5.1). */
export class StreamTable {
  readonly #isServer: boolean;
  readonly #streams: Map<number, Http2Stream> = new Map();
  /** The largest stream that the peer has opened. */
  lastPeerId = 0;
  /** The next stream that we open. RFC 9113 §5.1.1: streams of clients are odd. */
  nextOwnId = 1;
  /** The streams that we have reset; the oldest is overwritten. */
  #resets: Int32Array | undefined;
  #nextReset = 0;

  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  get size(): number {
    return this.#streams.size;
  }

  get canOpen(): boolean {
    return this.nextOwnId < MAX_STREAM_ID;
  }

  get(id: number): Http2Stream | undefined {
    return this.#streams.get(id);
  }

  values(): Iterable<Http2Stream> {
    return this.#streams.values();
  }

  /** Whether the peer refers to a stream that was never opened. */
  isIdle(id: number): boolean {
    // RFC 9113 §5.1.1: nobody pushes, so there are no even streams.
    if ((id & 1) === 0) return true;
    return this.#isServer ? id > this.lastPeerId : id >= this.nextOwnId;
  }

  /** Adds the next stream that we open. */
  open(sendWindow: number): Http2Stream {
    const id = this.nextOwnId;
    this.nextOwnId += 2;
    return this.add(id, sendWindow);
  }

  add(id: number, sendWindow: number): Http2Stream {
    const stream = takeStream(id, sendWindow, INITIAL_WINDOW_BYTES);
    this.#streams.set(id, stream);
    return stream;
  }

  /** Removes a stream before its last event. */
  delete(stream: Http2Stream): void {
    this.#streams.delete(stream.id);
  }

  /** Gives the record of a deleted stream back. */
  release(stream: Http2Stream): void {
    returnStream(stream);
  }

  rememberReset(id: number): void {
    this.#resets ??= new Int32Array(REMEMBERED_RESETS);
    this.#resets[this.#nextReset] = id;
    this.#nextReset = (this.#nextReset + 1) % REMEMBERED_RESETS;
  }

  wasReset(id: number): boolean {
    return this.#resets?.includes(id) === true;
  }
}
