import { MAX_STREAM_ID } from './protocol.ts';
import { Http2Stream } from './stream.ts';

/** How many resets are remembered. A peer may have sent frames for a stream before it receives the reset. */
const REMEMBERED_RESETS = 128;
/** How many heads a server may still send on a stream that we have reset: interim ones, the final one, and trailers. */
const LATE_HEADS_PER_RESET = 4;

/** The streams of one connection (RFC 9113 §5.1). */
export class StreamTable {
  readonly #isServer: boolean;
  /** The open streams in any order. Few streams are open at a time, and a Map would allocate memory per stream. */
  readonly #streams: Http2Stream[] = [];
  /** The largest stream that the peer has opened. */
  lastPeerId = 0;
  /** The last stream of the peer that is processed (RFC 9113 §6.8). */
  lastAcceptedId: number = MAX_STREAM_ID;
  /** The next stream that we open. RFC 9113 §5.1.1: streams of clients are odd. */
  nextOwnId = 1;
  /** The streams that we have reset; the oldest is overwritten. */
  #resets: Int32Array | undefined;
  #nextReset = 0;
  #lateHeads = 0;

  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  get size(): number {
    return this.#streams.length;
  }

  get canOpen(): boolean {
    return this.nextOwnId < MAX_STREAM_ID;
  }

  get(id: number): Http2Stream | undefined {
    // The newest streams are the busiest ones.
    for (let index = this.#streams.length - 1; index >= 0; index -= 1) {
      const stream = this.#streams[index] as Http2Stream;
      if (stream.id === id) return stream;
    }
    return undefined;
  }

  values(): readonly Http2Stream[] {
    return this.#streams;
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
    const stream = new Http2Stream(id, sendWindow);
    this.#streams.push(stream);
    return stream;
  }

  /** Whether a stream is open on this connection. */
  has(stream: Http2Stream): boolean {
    return stream.id !== 0 && this.get(stream.id) === stream;
  }

  /** Removes an open stream. */
  delete(stream: Http2Stream): void {
    const last = this.#streams.pop() as Http2Stream;
    if (last !== stream) this.#streams[this.#streams.indexOf(stream)] = last;
  }

  rememberReset(id: number): void {
    if (!this.#isServer) {
      this.#lateHeads += LATE_HEADS_PER_RESET;
      return;
    }
    this.#resets ??= new Int32Array(REMEMBERED_RESETS);
    this.#resets[this.#nextReset] = id;
    this.#nextReset = (this.#nextReset + 1) % REMEMBERED_RESETS;
  }

  /**
   * Whether frames of a stream without a record are ignored. A server ignores the streams that it has reset or does not
   * process. A client ignores all streams that it has opened: it resets any number of streams at once when users leave,
   * and a connection error would end the requests of the other users.
   */
  isIgnored(id: number): boolean {
    if (!this.#isServer) return true;
    return id > this.lastAcceptedId || this.#resets?.includes(id) === true;
  }

  /** Whether a head of an ignored stream is allowed. Each such head must be decoded, so their number is limited. */
  takeLateHead(): boolean {
    if (this.#isServer) return true;
    this.#lateHeads -= 1;
    return this.#lateHeads >= 0;
  }
}
