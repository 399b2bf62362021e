// The system calls for datagrams, with the rules of `ffi.ts`. The datagrams are in slots of native memory. All structures are
// initialized once. Per datagram, only the words are written that the kernel or an earlier datagram has changed, and no object is created.
// A single datagram uses recvmsg(2) and sendmsg(2), which cost less than recvmmsg(2) and sendmmsg(2).
import { strict as assert } from 'node:assert';
import { formatAddressWords, parseUnmappedAddressWords } from '@weir/model/data-plane';
import { checked, integer, link, type Structure, structure } from './ffi.ts';
import {
  AF_INET,
  AF_INET6,
  CMSG_DATA_OFFSET,
  CMSG_LEVEL_OFFSET,
  CMSG_TYPE_OFFSET,
  CMSG_U16_BYTES,
  CMSG_U16_LENGTH,
  IOVEC_BYTES,
  MMSGHDR_BYTES,
  MMSGHDR_LENGTH_OFFSET,
  MSGHDR_BYTES,
  MSGHDR_CONTROL_LENGTH_OFFSET,
  MSGHDR_CONTROL_OFFSET,
  MSGHDR_IOVEC_COUNT_OFFSET,
  MSGHDR_IOVEC_OFFSET,
  MSGHDR_NAME_LENGTH_OFFSET,
  SK_MEMINFO_BYTES,
  SK_MEMINFO_DROPS_WORD,
  SO_MEMINFO,
  SOCKADDR_IN_BYTES,
  SOCKADDR_IN6_BYTES,
  SOL_SOCKET,
  SOL_UDP,
  UDP_SEGMENT,
} from './layouts.ts';

const { recvmsg, sendmsg, recvmmsg, sendmmsg, getsockopt } = link({
  recvmsg: 3,
  sendmsg: 3,
  recvmmsg: 5,
  sendmmsg: 4,
  getsockopt: 5,
});

const NO_FLAGS = 0n;
const NO_TIMEOUT = 0n;
const HEADER_WORDS = MMSGHDR_BYTES / 4;
const LENGTH_WORD = MMSGHDR_LENGTH_OFFSET / 4;
const NAME_LENGTH_WORD = MSGHDR_NAME_LENGTH_OFFSET / 4;
const VECTOR_WORDS = IOVEC_BYTES / 4;
/** The space for one socket address, which `struct msghdr` calls a name. */
const NAME_BYTES = 32;

/** The `mmsghdr` structures of a list of datagrams. */
interface Headers {
  readonly words: Uint32Array;
  /** The address of each header. */
  readonly pointers: readonly bigint[];
  /** Memory to which only the kernel's structures refer. Without these references, V8 would free the memory. */
  readonly kept: readonly (Structure | undefined)[];
}

/** Slots of native memory for datagrams, and the structures with which the kernel fills and sends the slots. */
export class DatagramSlots {
  readonly slotBytes: number;
  readonly #strideBytes: number;
  readonly #memory: Structure;
  /** The low and the high word of the address of each slot. */
  readonly #lowWords: Uint32Array;
  readonly #highWords: Uint32Array;
  readonly #clientNames: Structure;
  readonly #fromClients: Headers;
  readonly #fromEndpoint: Headers;
  readonly #recipientNames: Structure;
  readonly #sendVectors: Structure;
  readonly #toClients: Headers;
  readonly #toEndpoint: Headers;
  readonly #segmented: Structure;
  readonly #segmentControl: Structure;

  /** Slot i begins at i * `strideBytes`. */
  constructor(options: { readonly count: number; readonly slotBytes: number; readonly strideBytes: number }) {
    const { count, slotBytes, strideBytes } = options;
    this.slotBytes = slotBytes;
    this.#strideBytes = strideBytes;
    this.#memory = structure(count * strideBytes);
    const addresses = Array.from({ length: count }, (_, slot) => this.#memory.pointer + BigInt(slot * strideBytes));
    this.#lowWords = Uint32Array.from(addresses, (address) => Number(address & 0xffffffffn));
    this.#highWords = Uint32Array.from(addresses, (address) => Number(address >> 32n));
    const receiveVectors = structure(count * IOVEC_BYTES);
    for (const [slot, address] of addresses.entries()) {
      receiveVectors.view.setBigUint64(slot * IOVEC_BYTES, address, true);
      receiveVectors.words[slot * VECTOR_WORDS + 2] = slotBytes;
    }
    this.#sendVectors = structure(count * IOVEC_BYTES);
    this.#clientNames = structure(count * NAME_BYTES);
    this.#recipientNames = structure(count * NAME_BYTES);
    this.#fromClients = headersFor(count, { vectors: receiveVectors, names: this.#clientNames });
    this.#fromEndpoint = headersFor(count, { vectors: receiveVectors });
    this.#toClients = headersFor(count, { vectors: this.#sendVectors, names: this.#recipientNames });
    this.#toEndpoint = headersFor(count, { vectors: this.#sendVectors });
    this.#segmentControl = structure(CMSG_U16_BYTES);
    this.#segmentControl.view.setBigUint64(0, BigInt(CMSG_U16_LENGTH), true);
    this.#segmentControl.view.setUint32(CMSG_LEVEL_OFFSET, SOL_UDP, true);
    this.#segmentControl.view.setUint32(CMSG_TYPE_OFFSET, UDP_SEGMENT, true);
    this.#segmented = structure(MSGHDR_BYTES);
    this.#segmented.view.setBigUint64(MSGHDR_IOVEC_OFFSET, this.#sendVectors.pointer, true);
    this.#segmented.view.setBigUint64(MSGHDR_CONTROL_OFFSET, this.#segmentControl.pointer, true);
    this.#segmented.view.setBigUint64(MSGHDR_CONTROL_LENGTH_OFFSET, BigInt(CMSG_U16_BYTES), true);
  }

  /** Returns the first `length` bytes of a slot. */
  view(slot: number, length: number): Uint8Array {
    return new Uint8Array(this.#memory.memory, slot * this.#strideBytes, length);
  }

  // Receiving

  /** Receives up to `count` datagrams into the slots from `first` on: recvmmsg(2). Returns the number of datagrams. */
  receiveFromClients(descriptor: number, first: number, count: number): number {
    const { words } = this.#fromClients;
    for (let slot = first; slot < first + count; slot += 1) {
      words[slot * HEADER_WORDS + NAME_LENGTH_WORD] = SOCKADDR_IN6_BYTES;
    }
    return receive(descriptor, this.#fromClients, { first, count });
  }

  /** Like `receiveFromClients`, for a connected socket. `endpointLengthOf` returns the lengths. */
  receiveFromEndpoint(descriptor: number, first: number, count: number): number {
    return receive(descriptor, this.#fromEndpoint, { first, count });
  }

  /** Returns the length of a datagram that `receiveFromClients` has received into the slot. */
  clientLengthOf(slot: number): number {
    return this.#fromClients.words[slot * HEADER_WORDS + LENGTH_WORD] as number;
  }

  /** Returns the length of a datagram that `receiveFromEndpoint` has received into the slot. */
  endpointLengthOf(slot: number): number {
    return this.#fromEndpoint.words[slot * HEADER_WORDS + LENGTH_WORD] as number;
  }

  /** Returns the `PeerAddress.host` of the client whose datagram is in the slot. */
  hostOf(slot: number): number | string {
    const { view } = this.#clientNames;
    const at = slot * NAME_BYTES;
    return view.getUint16(at, true) === AF_INET ? view.getInt32(at + 4) : ipv6HostAt(view, at);
  }

  portOf(slot: number): number {
    return this.#clientNames.view.getUint16(slot * NAME_BYTES + 2);
  }

  // Sending

  /** Makes the first `length` bytes of `slot` the datagram `index` of the next send. */
  prepare(index: number, slot: number, length: number): void {
    const { words } = this.#sendVectors;
    const at = index * VECTOR_WORDS;
    words[at] = this.#lowWords[slot] as number;
    words[at + 1] = this.#highWords[slot] as number;
    words[at + 2] = length;
  }

  /** Sets the recipient of the datagram `index` of the next `sendToClients`. */
  prepareRecipient(index: number, host: number | string, port: number): void {
    const { view } = this.#recipientNames;
    const at = index * NAME_BYTES;
    view.setUint16(at + 2, port);
    let length = SOCKADDR_IN_BYTES;
    if (typeof host === 'number') {
      view.setUint16(at, AF_INET, true);
      view.setInt32(at + 4, host);
    } else {
      view.setUint16(at, AF_INET6, true);
      writeIpv6Host(view, at, host);
      length = SOCKADDR_IN6_BYTES;
    }
    this.#toClients.words[index * HEADER_WORDS + NAME_LENGTH_WORD] = length;
  }

  /**
   * Sends the first `count` prepared datagrams: sendmmsg(2). Returns how many the kernel has taken, which may be fewer. If the kernel has
   * refused the first datagram, returns the negative errno.
   */
  sendToClients(descriptor: number, count: number): number {
    return send(descriptor, this.#toClients, count);
  }

  /** Like `sendToClients`, on a connected socket. The error may be the error of an earlier datagram. */
  sendToEndpoint(descriptor: number, count: number): number {
    return send(descriptor, this.#toEndpoint, count);
  }

  /**
   * Sends the first `count` prepared datagrams, which all have the length `segmentBytes`, on a connected socket. The datagrams go through
   * the kernel as one packet, which the kernel or the network card splits: `UDP_SEGMENT`. The kernel takes all datagrams or none.
   */
  sendSegments(descriptor: number, count: number, segmentBytes: number): number {
    this.#segmented.words[MSGHDR_IOVEC_COUNT_OFFSET / 4] = count;
    this.#segmentControl.view.setUint16(CMSG_DATA_OFFSET, segmentBytes, true);
    return checked(sendmsg(integer(descriptor), this.#segmented.pointer, NO_FLAGS));
  }
}

function headersFor(count: number, { vectors, names }: { vectors: Structure; names?: Structure }): Headers {
  const headers = structure(count * MMSGHDR_BYTES);
  const { view, words, pointer } = headers;
  for (let index = 0; index < count; index += 1) {
    const at = index * MMSGHDR_BYTES;
    if (names !== undefined) view.setBigUint64(at, names.pointer + BigInt(index * NAME_BYTES), true);
    view.setBigUint64(at + MSGHDR_IOVEC_OFFSET, vectors.pointer + BigInt(index * IOVEC_BYTES), true);
    view.setBigUint64(at + MSGHDR_IOVEC_COUNT_OFFSET, 1n, true);
  }
  const pointers = Array.from({ length: count }, (_, index) => pointer + BigInt(index * MMSGHDR_BYTES));
  return { words, pointers, kept: [headers, vectors, names] };
}

function receive(descriptor: number, headers: Headers, { first, count }: { first: number; count: number }): number {
  const pointer = headers.pointers[first];
  assert(pointer !== undefined && first + count <= headers.pointers.length, 'slots outside of the memory');
  if (count > 1) return checked(recvmmsg(integer(descriptor), pointer, integer(count), NO_FLAGS, NO_TIMEOUT));
  const length = checked(recvmsg(integer(descriptor), pointer, NO_FLAGS));
  if (length < 0) return length;
  headers.words[first * HEADER_WORDS + LENGTH_WORD] = length;
  return 1;
}

function send(descriptor: number, { pointers }: Headers, count: number): number {
  const pointer = pointers[0] as bigint;
  if (count > 1) return checked(sendmmsg(integer(descriptor), pointer, integer(count), NO_FLAGS));
  const result = checked(sendmsg(integer(descriptor), pointer, NO_FLAGS));
  return result < 0 ? result : 1;
}

// IPv6 addresses. Consecutive datagrams often have the same address, so the last conversion in each direction is cached.

const SCOPE_OFFSET = 24;
const received = { words: new Uint32Array(5), text: '' };
const sent = { words: new Uint32Array(4), scope: 0, text: '' };

/** The text of an address with a scope ends with `%` and the number of the interface, as only link-local addresses do. */
function ipv6HostAt(view: DataView, at: number): string {
  const { words } = received;
  let isSame = received.text !== '';
  for (let word = 0; word < 5; word += 1) {
    const value = word < 4 ? view.getUint32(at + 8 + 4 * word) : view.getUint32(at + SCOPE_OFFSET, true);
    if (words[word] !== value) isSame = false;
    words[word] = value;
  }
  if (!isSame) {
    const scope = words[4] as number;
    received.text = formatAddressWords('ipv6', words.subarray(0, 4)) + (scope > 0 ? `%${scope}` : '');
  }
  return received.text;
}

function writeIpv6Host(view: DataView, at: number, host: string): void {
  if (sent.text !== host) {
    parseUnmappedAddressWords(host, sent.words);
    const zone = host.indexOf('%');
    sent.scope = zone < 0 ? 0 : Number(host.slice(zone + 1));
    sent.text = host;
  }
  view.setUint32(at + 4, 0);
  for (let word = 0; word < 4; word += 1) view.setUint32(at + 8 + 4 * word, sent.words[word] as number);
  view.setUint32(at + SCOPE_OFFSET, sent.scope, true);
}

// Drops

const memoryInfo = structure(SK_MEMINFO_BYTES);
const memoryInfoLength = structure(4);

/** Returns how many datagrams the kernel has dropped at this socket since it was opened: `SO_MEMINFO` of getsockopt(2). 0 after an error. */
export function countDroppedDatagrams(descriptor: number): number {
  memoryInfoLength.words[0] = SK_MEMINFO_BYTES;
  memoryInfo.words[SK_MEMINFO_DROPS_WORD] = 0;
  getsockopt(
    integer(descriptor),
    integer(SOL_SOCKET),
    integer(SO_MEMINFO),
    memoryInfo.pointer,
    memoryInfoLength.pointer,
  );
  return memoryInfo.words[SK_MEMINFO_DROPS_WORD] as number;
}
