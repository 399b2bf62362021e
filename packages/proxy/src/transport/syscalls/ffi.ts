// Calls of C functions through `node:ffi`, and the memory that these functions read and write. No other file touches FFI, and no pointer
// leaves this directory.
//
// All memory that the kernel reads or writes is allocated as `NativeMemory` or `Structure`, and a live reference keeps the memory from being
// freed. Each `ArrayBuffer` has at least 128 bytes, because V8 moves the contents of typed arrays of at most 64 bytes. No length is negative
// or longer than its memory.
//
// All arguments are declared as pointers and passed as BigInts, also integers. Node.js checks every other type in a JavaScript wrapper,
// which V8 seldom inlines: 50 to 400 ns per call. C takes an `int` from the low 32 bits of the register, on x86-64 and on arm64.
import { enterGuardedCall, leaveGuardedCall } from '../termination-guard.ts';

const ffi = loadFfi();

type Call<N, R> = N extends 2
  ? (a: bigint, b: bigint) => R
  : N extends 3
    ? (a: bigint, b: bigint, c: bigint) => R
    : N extends 4
      ? (a: bigint, b: bigint, c: bigint, d: bigint) => R
      : N extends 5
        ? (a: bigint, b: bigint, c: bigint, d: bigint, e: bigint) => R
        : (a: bigint, b: bigint, c: bigint, d: bigint, e: bigint, f: bigint) => R;
type ArgumentCount = 2 | 3 | 4 | 5 | 6;
type Definitions = Readonly<Record<string, ArgumentCount>>;

/** Keeps the libraries open, because Node.js closes a library that nothing refers to. */
const libraries: unknown[] = [];

/**
 * Returns functions of libc, libuv or OpenSSL that return an int. `definitions` has the numbers of their arguments. Node.js also wraps functions
 * with one argument, so these get a second one, `UNUSED`. A caller puts the functions into constants, because V8 calls only constants
 * directly.
 */
export function link<const T extends Definitions>(definitions: T): { readonly [N in keyof T]: Call<T[N], number> } {
  return linkReturning('int32', definitions) as unknown as { readonly [N in keyof T]: Call<T[N], number> };
}

/** Like `link`, for functions that return an address or a 64-bit integer. */
export function linkAddresses<const T extends Definitions>(
  definitions: T,
): { readonly [N in keyof T]: Call<T[N], bigint> } {
  return linkReturning('pointer', definitions) as unknown as { readonly [N in keyof T]: Call<T[N], bigint> };
}

/**
 * Returns a function with one argument that may call a callback of this thread. Declared with nine arguments, because Node.js calls
 * functions with more than eight through libffi. V8 calls the others directly, as functions that do not enter JavaScript again. The
 * supervisor does not terminate this thread during a call.
 */
export function linkCallingBack(name: string): (argument: bigint) => number {
  const functions = linkReturning('int32', { [name]: 9 }) as unknown as Record<string, (...all: bigint[]) => number>;
  const call = functions[name] as (...all: bigint[]) => number;
  return (argument) => {
    enterGuardedCall();
    const result = call(argument, 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n);
    leaveGuardedCall();
    return result;
  };
}

function linkReturning(result: 'int32' | 'pointer', definitions: Readonly<Record<string, number>>): object {
  const signatures = Object.entries(definitions).map(([name, count]) => [
    name,
    { return: result, arguments: Array<string>(count).fill('pointer') },
  ]);
  const library = ffi.dlopen(null, Object.fromEntries(signatures));
  libraries.push(library);
  return library.functions;
}

/**
 * Returns the address of a C function that calls `callback` with `argumentCount` arguments. `callback` must not throw, because an
 * exception would end the process. Of an argument that is an int in C, only the low 32 bits are defined.
 */
export function callbackAddress(argumentCount: number, callback: (...all: readonly bigint[]) => number): bigint {
  const { lib } = ffi.dlopen(null, {});
  libraries.push(lib);
  const signature = { return: 'int32' as const, arguments: Array<'pointer'>(argumentCount).fill('pointer') };
  return lib.registerCallback(signature, callback as never);
}

/** Returns the address of a function, for a C function that takes a callback. */
export function functionAddress(name: string): bigint {
  return ffi.dlopen(null, {}).lib.getSymbol(name);
}

/** Returns the text at an address, up to its first zero byte; empty for the address 0. */
export function textAt(address: bigint): string {
  return address === 0n ? '' : (ffi.toString(address) ?? '');
}

/** Returns a copy of `length` bytes at an address. */
export function bytesAt(address: bigint, length: number): Buffer {
  return ffi.toBuffer(address, length, true);
}

/** An argument that the C function does not read. */
export const UNUSED = 0n;

/** The integers below 16,384 as BigInts, because each conversion allocates memory. */
const integers = Array.from({ length: 16_384 }, (_, value) => BigInt(value));
/** The last larger integer, for example the length of most reads. */
let largeValue = 0;
let largeInteger = 0n;

/** Returns an integer of at most 32 bits as an argument. */
export function integer(value: number): bigint {
  if (value >= 0 && value < integers.length) return integers[value] as bigint;
  if (value !== largeValue) {
    largeInteger = BigInt.asUintN(32, BigInt(value));
    largeValue = value;
  }
  return largeInteger;
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

  /** Returns the address of a range. */
  static addressOfRange(memory: NativeMemory, start: number, length: number): bigint {
    const isInside = start >= 0 && length >= 0 && start + length <= memory.bytes.length;
    if (!isInside) throw new RangeError('range outside of native memory');
    return start === 0 ? memory.#address : memory.#address + BigInt(start);
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
