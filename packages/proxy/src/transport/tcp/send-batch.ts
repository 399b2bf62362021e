// Small writes that wait until the end of the turn of the event loop. Then the worker sends them one right after the other.
//
// A write wakes its peer. If the worker does other work between two writes, a peer that is faster than the worker falls asleep again, or runs
// on the worker's processor and interrupts the worker for each write. If the writes follow each other, a peer is awake after the first. See
// docs/adr/0036-small-writes-wait-for-the-end-of-a-turn.md for figures.

import { eventLoop, type Flushable } from '../event-loop.ts';
import { NativeMemory } from '../syscalls/ffi.ts';

/** If the last wait has received fewer events, a write is sent at once: the copy would cost more than it saves. */
const MIN_EVENTS = 4;
/** If a further stream has bytes for the batch, the batch is sent first. */
const MAX_STREAMS = 64;
/** The size of a slot. Longer writes are sent at once. Not a power of two, so that the slots do not compete for the same lines of the cache. */
const SLOT_BYTES = 2_112;

/** A stream with bytes in the batch. */
export interface BatchedStream {
  /** The slot of this stream's bytes, or -1. Only `SendBatch` writes this field. */
  batchSlot: number;
  /** Sends the first `length` bytes of `memory`. The stream has no bytes in the batch any more. Must not throw. */
  sendBatched(memory: NativeMemory, length: number): void;
}

export class SendBatch implements Flushable {
  readonly #slots = Array.from({ length: MAX_STREAMS }, () => new NativeMemory(SLOT_BYTES));
  readonly #streams = Array<BatchedStream | undefined>(MAX_STREAMS).fill(undefined);
  readonly #lengths = new Int32Array(MAX_STREAMS);
  #count = 0;

  /**
   * Copies the bytes into the batch, behind earlier bytes of the stream. Returns false if the bytes must be sent at once,
   * after the earlier bytes.
   */
  add(stream: BatchedStream, bytes: Uint8Array): boolean {
    const { length } = bytes;
    if (this.bytesOf(stream) + length > SLOT_BYTES || eventLoop.eventCount < MIN_EVENTS) return false;
    const slot = stream.batchSlot < 0 ? this.#takeSlot(stream) : stream.batchSlot;
    const start = this.#lengths[slot] as number;
    (this.#slots[slot] as NativeMemory).bytes.set(bytes, start);
    this.#lengths[slot] = start + length;
    return true;
  }

  /** Returns how many bytes of the stream are in the batch. */
  bytesOf({ batchSlot }: BatchedStream): number {
    return batchSlot < 0 ? 0 : (this.#lengths[batchSlot] as number);
  }

  /** Sends the bytes of the stream now, if there are any. */
  send(stream: BatchedStream): void {
    const slot = stream.batchSlot;
    if (slot < 0) return;
    const length = this.remove(stream);
    stream.sendBatched(this.#slots[slot] as NativeMemory, length);
  }

  /** Removes the bytes of the stream, which are not sent. Returns how many there were. */
  remove(stream: BatchedStream): number {
    const slot = stream.batchSlot;
    if (slot < 0) return 0;
    stream.batchSlot = -1;
    this.#streams[slot] = undefined;
    return this.#lengths[slot] as number;
  }

  /** Sends all bytes. The event loop calls this method at the end of the turn. */
  flush(): void {
    const count = this.#count;
    this.#count = 0;
    for (let slot = 0; slot < count; slot += 1) {
      const stream = this.#streams[slot];
      if (stream !== undefined) this.send(stream);
    }
  }

  #takeSlot(stream: BatchedStream): number {
    if (this.#count === MAX_STREAMS) this.flush();
    else if (this.#count === 0) eventLoop.flushLater(this);
    const slot = this.#count;
    this.#count += 1;
    this.#streams[slot] = stream;
    this.#lengths[slot] = 0;
    stream.batchSlot = slot;
    return slot;
  }
}

/** The batch of this thread. */
export const sendBatch: SendBatch = new SendBatch();
