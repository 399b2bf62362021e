import type { RequestHeadRefusal } from './h1/refusals.ts';
import { RequestHeadParser } from './h1/request-head.ts';

/** Collects the head of the first request of a connection whose Service is not known yet. */
export class RequestHeadReader {
  /** All bytes that were pushed: the head, and what follows the head in the last piece. */
  bytes: Uint8Array = new Uint8Array(0);
  readonly head: RequestHeadParser = new RequestHeadParser();

  /** Adds bytes. Returns `done` if `head` is complete. At most one piece more than `MAX_HEAD_BYTES` is kept. */
  push(piece: Uint8Array): 'more' | 'done' | RequestHeadRefusal {
    this.bytes = this.bytes.length === 0 ? Uint8Array.from(piece) : Buffer.concat([this.bytes, piece]);
    return this.head.parse(this.bytes, 0, this.bytes.length);
  }
}
