// The kernel's memory for sockets. For the sockets of another process, duplicates its descriptors (pidfd_getfd(2)), which
// needs the right to trace the process.
import { readdirSync, readlinkSync } from 'node:fs';
import type { Server } from 'node:net';

/** The numbers of the system calls are the same on x86-64 and arm64. */
const PIDFD_OPEN = 434n;
const PIDFD_GETFD = 438n;
const SOL_SOCKET = 1n;
const SO_SNDBUF = 7n;
const SO_MEMINFO = 55n;
const MEMINFO_BYTES = 36;
/** The words of `SK_MEMINFO_…` in linux/sock_diag.h: received data, and data to send. */
const BUFFER_WORDS: readonly number[] = [0, 5];

const ffi = process.getBuiltinModule('node:ffi');
const { syscall, getsockopt, setsockopt, close } = ffi.dlopen(null, {
  syscall: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer'] },
  getsockopt: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'pointer'] },
  setsockopt: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'pointer'] },
  close: { return: 'int32', arguments: ['pointer', 'pointer'] },
}).functions;

/** Returns how many bytes the kernel buffers for the sockets of a process, with the kernel's overhead. */
export function socketMemoryOf(pid: number): number {
  const process = BigInt(syscall(PIDFD_OPEN, BigInt(pid), 0n, 0n));
  if (process < 0n) throw new Error(`pidfd_open failed for process ${pid}`);
  try {
    let bytes = 0;
    for (const name of readdirSync(`/proc/${pid}/fd`)) {
      if (!isSocket(`/proc/${pid}/fd/${name}`)) continue;
      const descriptor = BigInt(syscall(PIDFD_GETFD, process, BigInt(name), 0n));
      if (descriptor < 0n) continue;
      bytes += memoryOf(descriptor);
      close(descriptor, 0n);
    }
    return bytes;
  } finally {
    close(process, 0n);
  }
}

// At least 128 bytes, because V8 moves the contents of smaller typed arrays.
const words = new Uint32Array(new ArrayBuffer(128));
const length = new Uint32Array(new ArrayBuffer(128));
const pointers = [ffi.getRawPointer(words.buffer), ffi.getRawPointer(length.buffer)] as const;

/** Sets the size of the send buffers of all connections that the server accepts. */
export function setSendBuffer(server: Server, bytes: number): void {
  const { fd } = (server as Server & { readonly _handle: { readonly fd: number } })._handle;
  words[0] = bytes;
  if (setsockopt(BigInt(fd), SOL_SOCKET, SO_SNDBUF, pointers[0], 4n) < 0) throw new Error('setsockopt failed');
}

function memoryOf(descriptor: bigint): number {
  words.fill(0);
  length[0] = MEMINFO_BYTES;
  getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, ...pointers);
  return BUFFER_WORDS.reduce((sum, word) => sum + (words[word] as number), 0);
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    return false; // the descriptor has been closed since
  }
}
