// The memory of all datagrams of a worker: an arena of slots that all UDP sockets of this thread share.
//
// A socket receives into free slots and passes each datagram to its handler. If the handler sends the datagram on, the datagram stays in
// its slot. At the end of the turn of the event loop, each socket sends all its datagrams with one system call, and all slots are free.

import { eventLoop, type Flushable } from '../event-loop.ts';
import type { PeerAddress } from '../peer-address.ts';
import { DatagramSlots } from '../syscalls/datagrams.ts';

/** The maximum number of datagrams that a worker holds. */
const UDP_DATAGRAM_SLOTS = 64;
/** UDP datagrams are shorter than this. */
const SLOT_BYTES = 65_536;
/** Longer than a slot, so that the first bytes of all slots do not compete for the same lines of the CPU's cache. */
const SLOT_STRIDE_BYTES = SLOT_BYTES + 1_216;
/** The slot for a copy of a datagram that is not in a slot. */
const SPARE_SLOT = UDP_DATAGRAM_SLOTS;
export const NO_SLOT = -1;
/** The maximum number of bytes in the segments of one packet. An IPv4 packet holds 65,507 bytes of UDP payload. */
const MAX_SEGMENTED_BYTES = 65_000;

export const datagramSlots: DatagramSlots = new DatagramSlots({
  count: UDP_DATAGRAM_SLOTS + 1,
  slotBytes: SLOT_BYTES,
  strideBytes: SLOT_STRIDE_BYTES,
});

/** 1 if a `SlotQueue` contains the slot. */
const isQueued = new Uint8Array(UDP_DATAGRAM_SLOTS);
/** The next slot of the same `SlotQueue`. */
const following = new Int32Array(UDP_DATAGRAM_SLOTS).fill(NO_SLOT);

class DatagramArena implements Flushable {
  /** The last view of each slot. If the next datagram has the same length, as in most flows, the view is used again. */
  readonly #views: Uint8Array[] = Array.from({ length: UDP_DATAGRAM_SLOTS }, (_, slot) => datagramSlots.view(slot, 0));
  readonly #sockets: (Flushable | undefined)[] = [];
  #socketCount = 0;
  /** All slots from this slot on are free. */
  #next = 0;
  #handled = NO_SLOT;

  /** Returns the first of `count` free slots. If there are not enough, sends the datagrams in the slots first. */
  reserve(count: number): number {
    if (this.#next + count > UDP_DATAGRAM_SLOTS) this.flush();
    return this.#next;
  }

  /** Uses the first `count` of the reserved slots until the end of the turn. */
  use(count: number): void {
    if (this.#next === 0) eventLoop.flushLater(this);
    this.#next += count;
  }

  /** Returns the datagram in the slot. The bytes are valid until the handler returns. */
  bytesOf(slot: number, length: number): Uint8Array {
    const known = this.#views[slot] as Uint8Array;
    if (known.length === length) return known;
    const view = datagramSlots.view(slot, length);
    this.#views[slot] = view;
    return view;
  }

  /** Returns the bytes that the last `bytesOf` has returned for the slot. */
  lastBytesOf(slot: number): Uint8Array {
    return this.#views[slot] as Uint8Array;
  }

  /** Sets the slot of the datagram that a handler gets next. Returns the previous slot, which the caller sets again after the handler. */
  handle(slot: number): number {
    const previous = this.#handled;
    this.#handled = slot;
    return previous;
  }

  /** Returns the slot of `bytes` if they are the current handler's datagram and no socket has queued the datagram. Otherwise `NO_SLOT`. */
  slotOf(bytes: Uint8Array): number {
    const slot = this.#handled;
    return slot !== NO_SLOT && this.#views[slot] === bytes && isQueued[slot] === 0 ? slot : NO_SLOT;
  }

  /** Calls `flush` of a socket that has queued datagrams, before the slots are used again. */
  flushLater(socket: Flushable): void {
    this.#sockets[this.#socketCount] = socket;
    this.#socketCount += 1;
  }

  /** Makes all sockets send their datagrams, including sockets that `flushLater` adds meanwhile. */
  flush(): void {
    for (let index = 0; index < this.#socketCount; index += 1) {
      this.#sockets[index]?.flush();
      this.#sockets[index] = undefined;
    }
    this.#socketCount = 0;
    this.#next = 0;
  }
}

export const datagramArena: DatagramArena = new DatagramArena();

/** The slots whose datagrams one socket sends at the end of the turn, in the order of `send`. No two queues contain the same slot. */
export class SlotQueue {
  length = 0;
  #first = NO_SLOT;
  #last = NO_SLOT;

  push(slot: number): void {
    isQueued[slot] = 1;
    following[slot] = NO_SLOT;
    if (this.length === 0) this.#first = slot;
    else following[this.#last] = slot;
    this.#last = slot;
    this.length += 1;
  }

  /** Puts a slot in front of all others, unless a queue contains the slot. */
  unshift(slot: number): void {
    if (isQueued[slot] === 1) return;
    if (this.length === 0) {
      this.push(slot);
      return;
    }
    isQueued[slot] = 1;
    following[slot] = this.#first;
    this.#first = slot;
    this.length += 1;
  }

  /** Removes the first slot and returns it. The queue must not be empty. */
  shift(): number {
    const slot = this.#first;
    isQueued[slot] = 0;
    this.#first = following[slot] as number;
    this.length -= 1;
    return slot;
  }

  /** Returns how many datagrams, from the first on, have the same length and fit into one packet. */
  countSegments(): number {
    const bytes = this.firstLength;
    if (bytes === 0) return 0;
    const max = Math.min(this.length, Math.floor(MAX_SEGMENTED_BYTES / bytes));
    let count = 0;
    for (let slot = this.#first; count < max; slot = following[slot] as number) {
      if (datagramArena.lastBytesOf(slot).length !== bytes) break;
      count += 1;
    }
    return count;
  }

  /** The length of the first datagram. The queue must not be empty. */
  get firstLength(): number {
    return datagramArena.lastBytesOf(this.#first).length;
  }

  /** Makes the queued datagrams the datagrams of the next send. `recipients` has the recipient of each slot, unless the socket is connected. */
  prepare(recipients?: readonly (PeerAddress | undefined)[]): void {
    let slot = this.#first;
    for (let index = 0; index < this.length; index += 1) {
      datagramSlots.prepare(index, slot, datagramArena.lastBytesOf(slot).length);
      const to = recipients?.[slot];
      if (to !== undefined) datagramSlots.prepareRecipient(index, to.host, to.port);
      slot = following[slot] as number;
    }
  }
}

/** Copies bytes that are not in a slot, as the only datagram of the next send. Returns false if the bytes are longer than a slot. */
export function prepareCopy(bytes: Uint8Array): boolean {
  if (bytes.length > SLOT_BYTES) return false;
  spareBytes.set(bytes);
  datagramSlots.prepare(0, SPARE_SLOT, bytes.length);
  return true;
}

const spareBytes = datagramSlots.view(SPARE_SLOT, SLOT_BYTES);

/**
 * The number of datagrams that a socket asks the kernel for. Asking for one datagram costs less than asking for several. So a socket asks
 * for several only if its last call has returned several datagrams, or if the socket had events in two turns in a row.
 */
export class ReceiveBurst {
  size = 1;
  readonly #max: number;
  #lastTurn = 0;

  constructor(max: number) {
    this.#max = max;
  }

  adapt(received: number): void {
    const { turn } = eventLoop;
    const isBusy = received > 1 || (this.size === 1 && turn - this.#lastTurn === 1);
    this.size = isBusy ? this.#max : 1;
    this.#lastTurn = turn;
  }
}
