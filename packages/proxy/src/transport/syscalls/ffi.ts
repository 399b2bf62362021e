// Calls of C functions through `node:ffi`, and the memory that these functions read and write. No other file touches FFI, and no pointer
// leaves this directory.
//
// All memory that the kernel reads or writes is allocated as `NativeMemory` or `Structure`, and a live reference keeps the memory from being
// freed. Each `ArrayBuffer` has at least 128 bytes, because V8 moves the contents of typed arrays of at most 64 bytes. Lengths are passed as
// `int32` where C has `size_t`, because `node:ffi` takes a `size_t` as a BigInt, which would be an allocation per call. No length is negative
// or longer than its memory, which is shorter than 2^31 bytes. For such lengths, x86-64 and arm64 pass both types in the same way. A call
// with more than three arguments costs 300 ns more.

const ffi = loadFfi();

/** The C types of arguments. An address is a BigInt, and NULL is 0n. */
export type Argument = 'int32' | 'pointer';
type Values<T extends readonly Argument[]> = { [K in keyof T]: T[K] extends 'int32' ? number : bigint };
type Functions<T> = {
  readonly [N in keyof T]: (...args: T[N] extends readonly Argument[] ? Values<T[N]> : never) => number;
};

/** Keeps the libraries open, because Node.js closes a library that nothing refers to. */
const libraries: unknown[] = [];

/**
 * Returns functions of libc or libuv that return an int. `definitions` has the types of their arguments. A caller puts the functions into
 * constants, because V8 can inline only calls of constants.
 */
export function link<const T extends Readonly<Record<string, readonly Argument[]>>>(definitions: T): Functions<T> {
  const signatures = Object.entries(definitions).map(([name, types]) => [name, { return: 'int32', arguments: types }]);
  const library = ffi.dlopen(null, Object.fromEntries(signatures));
  libraries.push(library);
  return library.functions as unknown as Functions<T>;
}

const { __errno_location: errnoLocation } = ffi.dlopen(null, {
  __errno_location: { return: 'pointer', arguments: [] },
}).functions;
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
    if (!(length >= 0 && length <= memory.bytes.length)) throw new RangeError('range outside of native memory');
    return memory.#address;
  }

  /** Writes an `iovec` of the range into `words` at index `at`. */
  static describe(memory: NativeMemory, start: number, length: number, words: Uint32Array, at: number): void {
    const isInside = start >= 0 && length >= 0 && start + length <= memory.bytes.length;
    if (!isInside) throw new RangeError('range outside of native memory');
    const low = memory.#low + start;
    words[at] = low;
    words[at + 1] = memory.#high + (low > 0xffffffff ? 1 : 0);
    words[at + 2] = length;
    words[at + 3] = 0;
  }
}

/** Zeroed memory for C structures, with its address. */
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

/** The libuv loop of this thread. */
export const uvLoop: bigint = ffi.getCurrentEventLoop();

/**
 * Loads `node:ffi` without the warning that the module is experimental. All other warnings stay. Throws if this Node.js
 * does not have the module.
 */
function loadFfi(): typeof import('node:ffi') {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    const loaded: typeof import('node:ffi') | undefined = process.getBuiltinModule('node:ffi');
    if (loaded === undefined) throw new Error(`Node.js ${process.versions.node} does not offer node:ffi`);
    return loaded;
  } finally {
    process.emitWarning = emitWarning;
  }
}
