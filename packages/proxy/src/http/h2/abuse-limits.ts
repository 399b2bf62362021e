import { TokenBudget } from './token-budget.ts';

/** The number of streams that a client may have open at a time (SETTINGS_MAX_CONCURRENT_STREAMS). */
export const MAX_CONCURRENT_STREAMS = 100;
/** The bytes of a header block (HEADERS and CONTINUATION). A block whose fields are within their limits is shorter. */
export const MAX_HEADER_BLOCK_BYTES: number = 64 * 1024;
/** The number of CONTINUATION frames of a header block (CVE-2024-27316). */
export const MAX_CONTINUATION_FRAMES = 32;
/** The bytes that wait for a peer that does not read. Data of streams are not counted: they wait in their streams. */
export const MAX_QUEUED_BYTES: number = 512 * 1024;
/** The number of frames in a row that carry no request and no data: SETTINGS, empty DATA, WINDOW_UPDATE and so on. */
export const MAX_CONTROL_FRAMES = 1_000;
/** The number of PING in a row. gRPC clients measure the bandwidth with a PING for each DATA that they receive. */
export const MAX_PINGS = 1_000;
/** The number of requests in a row that a client resets before their end (rapid reset, CVE-2023-44487). */
export const MAX_PEER_RESETS = 200;
/** The number of resets in a row that a peer makes us send by invalid frames (made-you-reset, CVE-2025-8671). */
export const MAX_FORCED_RESETS = 100;

const CONTROL_FRAMES_PER_SECOND = 20;
const RESETS_PER_SECOND = 10;
const CONTROL_FRAMES_PER_HEAD = 10;
/** WINDOW_UPDATE follows data in both directions. */
const BYTES_PER_CONTROL_FRAME = 1_024;

/** Bounds the frames and resets of a peer that do no useful work. A `take` method returns false above its limit. */
export class AbuseLimits {
  readonly #now: () => number;
  readonly #controlFrames: TokenBudget;
  readonly #pings: TokenBudget;
  readonly #peerResets: TokenBudget;
  readonly #forcedResets: TokenBudget;

  /** `now` returns the time in milliseconds. */
  constructor(now: () => number) {
    const nowMs = now();
    this.#now = now;
    this.#controlFrames = new TokenBudget(MAX_CONTROL_FRAMES, CONTROL_FRAMES_PER_SECOND, nowMs);
    this.#pings = new TokenBudget(MAX_PINGS, CONTROL_FRAMES_PER_SECOND, nowMs);
    this.#peerResets = new TokenBudget(MAX_PEER_RESETS, RESETS_PER_SECOND, nowMs);
    this.#forcedResets = new TokenBudget(MAX_FORCED_RESETS, RESETS_PER_SECOND, nowMs);
  }

  takeControlFrame(): boolean {
    return this.#controlFrames.take(this.#now);
  }

  takePing(): boolean {
    return this.#pings.take(this.#now);
  }

  takePeerReset(): boolean {
    return this.#peerResets.take(this.#now);
  }

  takeForcedReset(): boolean {
    return this.#forcedResets.take(this.#now);
  }

  onHead(): void {
    this.#controlFrames.give(CONTROL_FRAMES_PER_HEAD);
    this.#pings.give(CONTROL_FRAMES_PER_HEAD);
  }

  onData(bytes: number): void {
    this.#controlFrames.give(bytes / BYTES_PER_CONTROL_FRAME);
  }

  onDataSent(bytes: number): void {
    this.#controlFrames.give(bytes / BYTES_PER_CONTROL_FRAME);
    this.#pings.give(1);
  }

  /** A request and its response are complete. */
  onExchange(): void {
    this.#peerResets.give(1);
    this.#forcedResets.give(1);
  }
}
