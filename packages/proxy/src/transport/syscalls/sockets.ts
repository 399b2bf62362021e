// The system calls for sockets. A function returns the result of the system call, or the negative errno, unless its comment says otherwise.
import { strict as assert } from 'node:assert';
import { formatAddressWords, parseUnmappedAddressWords } from '@weir/model/data-plane';
import { countDescriptor } from '../../limits/descriptor-count.ts';
import type { PeerAddress } from '../peer-address.ts';
import { checked, integer, link, NativeMemory, structure, UNUSED } from './ffi.ts';
import {
  AF_INET,
  AF_INET6,
  IOVEC_BYTES,
  MSG_NOSIGNAL,
  MSGHDR_BYTES,
  MSGHDR_IOVEC_COUNT_OFFSET,
  MSGHDR_IOVEC_OFFSET,
  SHUT_WR,
  SIOCOUTQ,
  SK_MEMINFO_BYTES,
  SK_MEMINFO_RECEIVE_LIMIT_WORD,
  SK_MEMINFO_RECEIVED_WORD,
  SK_MEMINFO_TO_SEND_WORD,
  SO_ERROR,
  SO_LINGER,
  SO_MEMINFO,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCKADDR_IN_BYTES,
  SOCKADDR_IN6_BYTES,
  SOL_SOCKET,
} from './layouts.ts';

const {
  socket,
  bind,
  listen,
  accept4,
  connect,
  recv,
  send,
  sendmsg,
  shutdown,
  close,
  getsockname,
  setsockopt,
  getsockopt,
  ioctl,
} = link({
  socket: 3,
  bind: 3,
  listen: 2,
  accept4: 4,
  connect: 3,
  recv: 4,
  send: 4,
  sendmsg: 3,
  shutdown: 2,
  close: 2,
  getsockname: 3,
  setsockopt: 5,
  getsockopt: 5,
  ioctl: 3,
});

const SOCKET_FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC;
const ACCEPT_FLAGS = integer(SOCKET_FLAGS);
const SEND_FLAGS = integer(MSG_NOSIGNAL);
const NO_FLAGS = 0n;
const OUTPUT_QUEUE = integer(SIOCOUTQ);

const EINTR = -4;
/** How often a call that a signal has interrupted is repeated. Without a limit, signals could block the other connections. */
const MAX_REPEATS = 16;

const address = structure(SOCKADDR_IN6_BYTES);
const addressLength = structure(4);
const optionValue = structure(8);
const optionLength = structure(4);
const memoryInfo = structure(SK_MEMINFO_BYTES);
const writeVector = structure(IOVEC_BYTES);
const message = structure(MSGHDR_BYTES);
message.view.setBigUint64(MSGHDR_IOVEC_OFFSET, writeVector.pointer, true);
message.view.setBigUint64(MSGHDR_IOVEC_COUNT_OFFSET, 1n, true);

// Descriptors of a thread that ends

/** One byte for each possible descriptor: 1 if this thread has opened the descriptor through this file and not closed it. */
let openDescriptors: Uint8Array | undefined;

/**
 * Makes this thread record its open descriptors in `memory`, which another thread can read. The kernel does not close the descriptors of a
 * thread that ends, so the supervisor closes the descriptors of an ended worker with `closeAbandoned`.
 */
export function recordDescriptors(memory: SharedArrayBuffer): void {
  openDescriptors = new Uint8Array(memory);
}

/** Resets the connections and closes the other descriptors that an ended thread has left open. Returns their number. */
export function closeAbandoned(memory: SharedArrayBuffer): number {
  const descriptors = new Uint8Array(memory);
  let count = 0;
  for (let descriptor = descriptors.indexOf(1); descriptor >= 0; descriptor = descriptors.indexOf(1, descriptor + 1)) {
    descriptors[descriptor] = 0;
    resetConnection(descriptor);
    count += 1;
  }
  return count;
}

/** Records and counts the descriptor that a system call has returned, and returns the descriptor or the negative errno. */
export function opened(result: number): number {
  const descriptor = checked(result);
  if (descriptor < 0) return descriptor;
  countDescriptor(1);
  if (openDescriptors !== undefined) openDescriptors[descriptor] = 1;
  return descriptor;
}

/** Must be called before the close, because another thread may get the same number right after the close. */
function forget(descriptor: number): void {
  countDescriptor(-1);
  if (openDescriptors !== undefined) openDescriptors[descriptor] = 0;
}

// Sockets

/** socket(2), non-blocking and close-on-exec. */
export function openSocket(family: number, type: number): number {
  return opened(socket(integer(family), integer(type | SOCKET_FLAGS), 0n));
}

/** bind(2). `host` must be an IP literal. */
export function bindSocket(descriptor: number, host: string, port: number): number {
  return checked(bind(integer(descriptor), address.pointer, integer(writeAddress(host, port))));
}

/** listen(2). */
export function listenSocket(descriptor: number, backlog: number): number {
  return checked(listen(integer(descriptor), integer(backlog)));
}

/**
 * connect(2). `host` must be an IP literal. -EINPROGRESS is the usual result. After a signal the call is repeated, and
 * the result may be -EALREADY or -EISCONN.
 */
export function connectSocket(descriptor: number, host: string, port: number): number {
  const length = integer(writeAddress(host, port));
  let result = checked(connect(integer(descriptor), address.pointer, length));
  for (let repeat = 0; result === EINTR && repeat < MAX_REPEATS; repeat += 1)
    result = checked(connect(integer(descriptor), address.pointer, length));
  return result;
}

/** accept4(2). Afterwards `acceptedPeer` returns the client's address. */
export function acceptConnection(descriptor: number): number {
  addressLength.words[0] = SOCKADDR_IN6_BYTES;
  return opened(accept4(integer(descriptor), address.pointer, addressLength.pointer, ACCEPT_FLAGS));
}

/** Returns the local port of a socket, or the negative errno of getsockname(2). */
export function localPort(descriptor: number): number {
  addressLength.words[0] = SOCKADDR_IN6_BYTES;
  const result = checked(getsockname(integer(descriptor), address.pointer, addressLength.pointer));
  return result < 0 ? result : address.view.getUint16(2);
}

/** Returns the address that the last `acceptConnection` has received. */
export function acceptedPeer(): PeerAddress {
  const { view } = address;
  const port = view.getUint16(2);
  if (view.getUint16(0, true) === AF_INET) return { host: view.getUint32(4), port };
  const words = new Uint32Array(4);
  for (let word = 0; word < 4; word += 1) words[word] = view.getUint32(8 + 4 * word);
  return { host: formatAddressWords('ipv6', words), port };
}

const words = new Uint32Array(4);

/** Returns the address family of an IP literal. */
export function familyOf(host: string): number {
  return host.includes(':') ? AF_INET6 : AF_INET;
}

/** Writes a socket address and returns its length. */
function writeAddress(host: string, port: number): number {
  const family = parseUnmappedAddressWords(host, words);
  assert(family !== undefined, 'not an IP literal');
  const { view } = address;
  view.setUint16(0, family === 'ipv4' ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  if (family === 'ipv4') {
    view.setUint32(4, words[0] as number);
    view.setUint32(8, 0);
    view.setUint32(12, 0);
    return SOCKADDR_IN_BYTES;
  }
  view.setUint32(4, 0);
  for (let word = 0; word < 4; word += 1) view.setUint32(8 + 4 * word, words[word] as number);
  view.setUint32(24, 0);
  return SOCKADDR_IN6_BYTES;
}

/** setsockopt(2) with an int. */
export function setOption(descriptor: number, level: number, name: number, value: number): number {
  optionValue.words[0] = value;
  return checked(setsockopt(integer(descriptor), integer(level), integer(name), optionValue.pointer, 4n));
}

/** Returns the pending error of a socket as a negative errno, and clears the error: `SO_ERROR` of getsockopt(2). 0 if there is none. */
export function takeSocketError(descriptor: number): number {
  optionLength.words[0] = 4;
  const result = checked(
    getsockopt(integer(descriptor), integer(SOL_SOCKET), integer(SO_ERROR), optionValue.pointer, optionLength.pointer),
  );
  return result < 0 ? result : -(optionValue.words[0] as number);
}

/**
 * Returns how many bytes of the sequence space the peer has not acknowledged: `SIOCOUTQ` of tcp(7). A FIN counts as one
 * byte. Also works after the peer has reset the connection; Linux ignores the acknowledgement in a RST.
 */
export function unacknowledgedSequence(descriptor: number): number {
  const result = checked(ioctl(integer(descriptor), OUTPUT_QUEUE, optionValue.pointer));
  return result < 0 ? result : (optionValue.words[0] as number);
}

/** The memory of a TCP socket in the kernel, in bytes and with the kernel's overhead. */
export interface SocketMemory {
  /** The memory of received bytes that were not read. */
  readonly received: number;
  /** The limit of `received`. */
  readonly maxReceived: number;
  /** The memory of bytes that the peer has not acknowledged. */
  readonly toSend: number;
}

/** Returns the memory of a socket: `SO_MEMINFO` of getsockopt(2). 0 after an error. */
export function socketMemory(descriptor: number): SocketMemory {
  memoryInfo.words.fill(0);
  optionLength.words[0] = SK_MEMINFO_BYTES;
  getsockopt(integer(descriptor), integer(SOL_SOCKET), integer(SO_MEMINFO), memoryInfo.pointer, optionLength.pointer);
  const { words: sizes } = memoryInfo;
  return {
    received: sizes[SK_MEMINFO_RECEIVED_WORD] as number,
    maxReceived: sizes[SK_MEMINFO_RECEIVE_LIMIT_WORD] as number,
    toSend: sizes[SK_MEMINFO_TO_SEND_WORD] as number,
  };
}

/** Sends FIN after the bytes that the kernel has: shutdown(2) with `SHUT_WR`. */
export function shutdownWrite(descriptor: number): number {
  return checked(shutdown(integer(descriptor), integer(SHUT_WR)));
}

/** close(2). The descriptor is free afterwards, even after an error. */
export function closeDescriptor(descriptor: number): number {
  forget(descriptor);
  return checked(close(integer(descriptor), UNUSED));
}

/** Closes a connection with RST and discards the bytes in its send buffer: `SO_LINGER` of socket(7) with a time of 0. */
export function resetConnection(descriptor: number): void {
  forget(descriptor);
  optionValue.words[0] = 1;
  optionValue.words[1] = 0;
  const argument = integer(descriptor);
  setsockopt(argument, integer(SOL_SOCKET), integer(SO_LINGER), optionValue.pointer, 8n);
  close(argument, UNUSED);
}

/** Forgets a descriptor that another owner will close, for example a `net.Socket`. */
export function releaseDescriptor(descriptor: number): void {
  forget(descriptor);
}

// Reading and writing

/**
 * recv(2) into the first `length` bytes of the memory. 0 means the end of the stream. Repeated after a signal. On a socket, recv(2) and
 * send(2) cost about 0.1 µs less than read(2) and write(2).
 */
export function receive(descriptor: number, memory: NativeMemory, length: number): number {
  const pointer = NativeMemory.addressOf(memory, length);
  let result = checked(recv(integer(descriptor), pointer, integer(length), NO_FLAGS));
  for (let repeat = 0; result === EINTR && repeat < MAX_REPEATS; repeat += 1)
    result = checked(recv(integer(descriptor), pointer, integer(length), NO_FLAGS));
  return result;
}

/** Sends the first `length` bytes of the memory: send(2). The kernel may take only some of them. Repeated after a signal. */
export function transmit(descriptor: number, memory: NativeMemory, length: number): number {
  const pointer = NativeMemory.addressOf(memory, length);
  let result = checked(send(integer(descriptor), pointer, integer(length), SEND_FLAGS));
  for (let repeat = 0; result === EINTR && repeat < MAX_REPEATS; repeat += 1)
    result = checked(send(integer(descriptor), pointer, integer(length), SEND_FLAGS));
  return result;
}

/**
 * Sends a range of the memory like `transmit`, but with sendmsg(2). An address in a structure needs no BigInt, but as an
 * argument of send(2) it would.
 */
export function transmitRange(descriptor: number, memory: NativeMemory, start: number, length: number): number {
  NativeMemory.describe(memory, start, length, writeVector.words, 0);
  let result = checked(sendmsg(integer(descriptor), message.pointer, SEND_FLAGS));
  for (let repeat = 0; result === EINTR && repeat < MAX_REPEATS; repeat += 1)
    result = checked(sendmsg(integer(descriptor), message.pointer, SEND_FLAGS));
  return result;
}
