// The system calls of the data path, through `node:ffi`. Only this file and `datagram-syscalls.ts` touch FFI, and no pointer leaves these
// two files.
//
// All memory that the kernel reads or writes is allocated as `NativeMemory`, and a live reference keeps the memory from being freed.
// Each `ArrayBuffer` has at least 128 bytes, because V8 moves the contents of typed arrays of at most 64 bytes. Lengths are passed as
// `int32` where C has `size_t`: as a BigInt, a length would be an allocation per call. Every length is checked to be positive and below
// 2^31, and for these values the registers of x86-64 and arm64 are the same.
//
// Unless its comment says otherwise, a function returns the result of the system call, or the negative errno.
import { strict as assert } from 'node:assert';
import { formatAddressWords, parseUnmappedAddressWords } from '@weir/model/data-plane';
import type { PeerAddress } from './peer-address.ts';
import {
  AF_INET,
  AF_INET6,
  EPOLL_CLOEXEC,
  EPOLL_CTL_ADD,
  EPOLL_CTL_DEL,
  EPOLL_CTL_MOD,
  epollEventLayoutFor,
  IOVEC_BYTES,
  MSG_NOSIGNAL,
  MSGHDR_BYTES,
  MSGHDR_IOVEC_COUNT_OFFSET,
  MSGHDR_IOVEC_OFFSET,
  SHUT_WR,
  SIOCOUTQ,
  SO_ERROR,
  SO_LINGER,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCKADDR_IN_BYTES,
  SOCKADDR_IN6_BYTES,
  SOL_SOCKET,
} from './syscall-layouts.ts';

export const ffi: typeof import('node:ffi') = loadFfi();

const I32 = 'int32';
const PTR = 'pointer';
const signature = <const A extends readonly ('int32' | 'pointer')[]>(...args: A) =>
  ({ return: I32, arguments: args }) as const;

const { functions } = ffi.dlopen(null, {
  socket: signature(I32, I32, I32),
  bind: signature(I32, PTR, I32),
  listen: signature(I32, I32),
  accept4: signature(I32, PTR, PTR, I32),
  connect: signature(I32, PTR, I32),
  read: signature(I32, PTR, I32),
  write: signature(I32, PTR, I32),
  sendmsg: signature(I32, PTR, I32),
  shutdown: signature(I32, I32),
  close: signature(I32),
  getsockname: signature(I32, PTR, PTR),
  setsockopt: signature(I32, I32, I32, PTR, I32),
  getsockopt: signature(I32, I32, I32, PTR, PTR),
  ioctl: signature(I32, I32, PTR),
  epoll_create1: signature(I32),
  epoll_ctl: signature(I32, I32, I32, PTR),
  epoll_wait: signature(I32, PTR, I32, I32),
  uv_backend_fd: signature(PTR),
  uv_backend_timeout: signature(PTR),
  __errno_location: { return: PTR, arguments: [] },
});
// Constants and not properties, because V8 can inline only calls of constants.
const {
  socket,
  bind,
  listen,
  accept4,
  connect,
  read,
  write,
  sendmsg,
  shutdown,
  close,
  getsockname,
  setsockopt,
  getsockopt,
  ioctl,
  epoll_create1: epollCreate1,
  epoll_ctl: epollCtl,
  epoll_wait: epollWait,
  uv_backend_fd: uvBackendFd,
  uv_backend_timeout: uvBackendTimeout,
  __errno_location: errnoLocation,
} = functions;

/** `errno` of this thread, see errno(3). Valid after a call that returned -1. */
const errno = new Int32Array(ffi.toArrayBuffer(errnoLocation(), 4, false));

/** Returns the result of a system call, or the negative errno. To be called right after the system call. */
export function checked(result: number): number {
  return result >= 0 ? result : -(errno[0] as number);
}

const MIN_MEMORY_BYTES = 128;

/** Memory for system calls. The address is split into two 32-bit words, because structures in memory are written without BigInts. */
export class NativeMemory {
  readonly bytes: Uint8Array;
  readonly #address: bigint;
  readonly #low: number;
  readonly #high: number;

  constructor(length: number) {
    const memory = Buffer.allocUnsafeSlow(Math.max(MIN_MEMORY_BYTES, length)).buffer;
    this.bytes = new Uint8Array(memory, 0, length);
    this.#address = ffi.getRawPointer(memory);
    this.#low = Number(this.#address & 0xffffffffn);
    this.#high = Number(this.#address >> 32n);
  }

  /** Returns the address of the first `length` bytes. */
  static addressOf(memory: NativeMemory, length: number): bigint {
    assert(length >= 0 && length <= memory.bytes.length, 'range outside of native memory');
    return memory.#address;
  }

  /** Writes an `iovec` of the range into `words` at index `at`. */
  static describe(memory: NativeMemory, start: number, length: number, words: Uint32Array, at: number): void {
    assert(start >= 0 && length >= 0 && start + length <= memory.bytes.length, 'range outside of native memory');
    const low = memory.#low + start;
    words[at] = low;
    words[at + 1] = memory.#high + (low > 0xffffffff ? 1 : 0);
    words[at + 2] = length;
    words[at + 3] = 0;
  }
}

/** A zeroed area for structures, with its address. */
export interface Structure {
  readonly memory: ArrayBuffer;
  readonly words: Uint32Array;
  readonly view: DataView;
  readonly pointer: bigint;
}

export function structure(bytes: number): Structure {
  const memory = new ArrayBuffer(Math.max(MIN_MEMORY_BYTES, Math.ceil(bytes / 4) * 4));
  return { memory, words: new Uint32Array(memory), view: new DataView(memory), pointer: ffi.getRawPointer(memory) };
}

const address = structure(SOCKADDR_IN6_BYTES);
const addressLength = structure(4);
const optionValue = structure(8);
const optionLength = structure(4);
const writeVector = structure(IOVEC_BYTES);
const message = structure(MSGHDR_BYTES);
message.view.setBigUint64(MSGHDR_IOVEC_OFFSET, writeVector.pointer, true);
message.view.setBigUint64(MSGHDR_IOVEC_COUNT_OFFSET, 1n, true);

// Descriptors of a thread that ends

/** One byte for each possible descriptor: 1 if this thread has opened the descriptor through this file and not closed it. */
let openDescriptors: Uint8Array | undefined;

/**
 * Records the descriptors that this thread opens in memory that another thread can read. The kernel does not close the descriptors of a
 * thread, so after a worker has been terminated, its supervisor closes them with `closeAbandoned`.
 */
export function recordDescriptors(memory: SharedArrayBuffer): void {
  openDescriptors = new Uint8Array(memory);
}

/** Resets the connections and closes the other descriptors that an ended thread has left open. Returns how many there were. */
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

function opened(result: number): number {
  const descriptor = checked(result);
  if (descriptor >= 0 && openDescriptors !== undefined) openDescriptors[descriptor] = 1;
  return descriptor;
}

/** To be called before the close, because another thread may get the same number right after the close. */
function forget(descriptor: number): void {
  if (openDescriptors !== undefined) openDescriptors[descriptor] = 0;
}

// Sockets

/** socket(2), non-blocking and close-on-exec. */
export function openSocket(family: number, type: number): number {
  return opened(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/** bind(2). `host` must be an IP literal. */
export function bindSocket(descriptor: number, host: string, port: number): number {
  return checked(bind(descriptor, address.pointer, writeAddress(host, port)));
}

/** listen(2). */
export function listenSocket(descriptor: number, backlog: number): number {
  return checked(listen(descriptor, backlog));
}

/** connect(2). `host` must be an IP literal. -EINPROGRESS is the usual result. */
export function connectSocket(descriptor: number, host: string, port: number): number {
  return checked(connect(descriptor, address.pointer, writeAddress(host, port)));
}

/** accept4(2). Afterwards `acceptedPeer` returns the client's address. */
export function acceptConnection(descriptor: number): number {
  addressLength.words[0] = SOCKADDR_IN6_BYTES;
  return opened(accept4(descriptor, address.pointer, addressLength.pointer, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

/** Returns the local port of a socket, or the negative errno of getsockname(2). */
export function localPort(descriptor: number): number {
  addressLength.words[0] = SOCKADDR_IN6_BYTES;
  const result = checked(getsockname(descriptor, address.pointer, addressLength.pointer));
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
  return checked(setsockopt(descriptor, level, name, optionValue.pointer, 4));
}

/** Returns the pending error of a socket as a negative errno, and clears the error: `SO_ERROR` of getsockopt(2). 0 if there is none. */
export function takeSocketError(descriptor: number): number {
  optionLength.words[0] = 4;
  const result = checked(getsockopt(descriptor, SOL_SOCKET, SO_ERROR, optionValue.pointer, optionLength.pointer));
  return result < 0 ? result : -(optionValue.words[0] as number);
}

/**
 * Returns how many bytes of the sequence space the peer has not acknowledged: `SIOCOUTQ` of tcp(7). A FIN counts as one
 * byte. Also works after the peer has reset the connection; Linux ignores the acknowledgement in a RST.
 */
export function unacknowledgedSequence(descriptor: number): number {
  const result = checked(ioctl(descriptor, SIOCOUTQ, optionValue.pointer));
  return result < 0 ? result : (optionValue.words[0] as number);
}

/** Sends FIN after the bytes that the kernel has: shutdown(2) with `SHUT_WR`. */
export function shutdownWrite(descriptor: number): number {
  return checked(shutdown(descriptor, SHUT_WR));
}

/** close(2). The descriptor is free afterwards, even after an error. */
export function closeDescriptor(descriptor: number): number {
  forget(descriptor);
  return checked(close(descriptor));
}

/** Closes a connection with RST and discards the bytes in its send buffer: `SO_LINGER` of socket(7) with a time of 0. */
export function resetConnection(descriptor: number): void {
  forget(descriptor);
  optionValue.words[0] = 1;
  optionValue.words[1] = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, optionValue.pointer, 8);
  close(descriptor);
}

/** Leaves the descriptor to another owner, for example to a `net.Socket`. This thread no longer closes the descriptor. */
export function releaseDescriptor(descriptor: number): void {
  forget(descriptor);
}

// Reading and writing

/** read(2) into the first `length` bytes of the memory. 0 means the end of the stream. */
export function receive(descriptor: number, memory: NativeMemory, length: number): number {
  return checked(read(descriptor, NativeMemory.addressOf(memory, length), length));
}

/**
 * Sends a range of the memory: write(2) if the range begins at 0, otherwise sendmsg(2), because the address of a range
 * in a structure needs no BigInt. The kernel may take only the first bytes. Node.js ignores SIGPIPE.
 */
export function transmit(descriptor: number, memory: NativeMemory, start: number, length: number): number {
  if (start === 0) return checked(write(descriptor, NativeMemory.addressOf(memory, length), length));
  NativeMemory.describe(memory, start, length, writeVector.words, 0);
  return checked(sendmsg(descriptor, message.pointer, MSG_NOSIGNAL));
}

// epoll

const layout = epollEventLayoutFor(process.arch);

/** The events that one `EventPoll.wait` returns at most. */
const MAX_EVENTS = 256;

/** An epoll instance, see epoll(7). The data of an event is the descriptor and the generation of its registration. */
export class EventPoll {
  readonly #descriptor: number;
  readonly #registration = structure(16);
  readonly #events: Structure;
  readonly #eventWords: number;
  readonly #dataWord: number;

  constructor() {
    assert(layout !== undefined, `no layout of epoll_event for ${process.arch}`);
    this.#events = structure(MAX_EVENTS * layout.bytes);
    this.#eventWords = layout.bytes / 4;
    this.#dataWord = layout.dataOffset / 4;
    this.#descriptor = opened(epollCreate1(EPOLL_CLOEXEC));
    assert(this.#descriptor >= 0, 'epoll_create1 failed');
  }

  add(descriptor: number, events: number, generation: number): number {
    return this.#control(EPOLL_CTL_ADD, descriptor, events, generation);
  }

  modify(descriptor: number, events: number, generation: number): number {
    return this.#control(EPOLL_CTL_MOD, descriptor, events, generation);
  }

  delete(descriptor: number): number {
    return this.#control(EPOLL_CTL_DEL, descriptor, 0, 0);
  }

  /** epoll_wait(2). Returns the number of events, for the three functions below. */
  wait(timeoutMs: number): number {
    return checked(epollWait(this.#descriptor, this.#events.pointer, MAX_EVENTS, timeoutMs));
  }

  eventsAt(index: number): number {
    return this.#events.words[index * this.#eventWords] as number;
  }

  descriptorAt(index: number): number {
    return this.#events.words[index * this.#eventWords + this.#dataWord] as number;
  }

  generationAt(index: number): number {
    return this.#events.words[index * this.#eventWords + this.#dataWord + 1] as number;
  }

  close(): void {
    closeDescriptor(this.#descriptor);
  }

  #control(operation: number, descriptor: number, events: number, generation: number): number {
    const { words: registration, pointer } = this.#registration;
    registration[0] = events;
    registration[this.#dataWord] = descriptor;
    registration[this.#dataWord + 1] = generation;
    return checked(epollCtl(this.#descriptor, operation, descriptor, pointer));
  }
}

// libuv

const uvLoop = ffi.getCurrentEventLoop();

/** Returns the epoll descriptor of this thread's libuv loop: `uv_backend_fd`. */
export function libuvDescriptor(): number {
  return uvBackendFd(uvLoop);
}

/** Returns the milliseconds until libuv's next timer, 0 if libuv has work now, or -1 if no timer is set: `uv_backend_timeout`. */
export function libuvTimeoutMs(): number {
  return uvBackendTimeout(uvLoop);
}

/** Loads `node:ffi` without the warning that the module is experimental. All other warnings stay. */
function loadFfi(): typeof import('node:ffi') {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule('node:ffi');
  } finally {
    process.emitWarning = emitWarning;
  }
}
