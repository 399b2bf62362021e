import { writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type * as tls from 'node:tls';
import type { TLSSocket } from 'node:tls';

// Internal state of a TLSSocket and of its raw socket, which Node's public interface does not offer. If this version of
// Node.js lacks a field, every client certificate counts as not verified, no end of input counts as truncated, and no OCSP
// response is sent.

/** The error code of `readStart` for a handle that is already reading. */
const UV_EALREADY = -constants.errno.EALREADY;
const NO_BYTES = new Uint8Array(0);

interface SocketInternals {
  /** Whether closing the socket sends RST. */
  resetAndClosing?: boolean;
  readonly _handle?: {
    /** The file descriptor, or -1 if there is none. */
    readonly fd?: number;
    /** The number of bytes that libuv has not written to the kernel yet. */
    readonly writeQueueSize?: number;
    readonly reading?: boolean;
    /** Of a TLSSocket's handle: starts to read the raw socket. */
    readStart?(): number;
    readStop?(): number;
    /** Returns null if the peer's certificate is verified or absent. */
    verifyError?(): Error | null;
    /** Sets the OCSP response that a client gets if it asks for one. */
    setOCSPResponse?(response: Uint8Array): void;
    /** Processes bytes of the peer in the same way as if libuv had read them. */
    receive?(bytes: Uint8Array): void;
  } | null;
}

export const tlsSocketInternals = {
  /** Whether the kernel has taken all bytes written to the raw socket. */
  isWriteQueueEmpty(raw: Socket): boolean {
    return (raw as SocketInternals)._handle?.writeQueueSize === 0;
  },

  /** Returns an errno name if the raw socket cannot be written to any more, otherwise undefined. Sends nothing. */
  writeErrorOf(raw: Socket): string | undefined {
    const handle = (raw as SocketInternals)._handle;
    const { fd = -1, writeQueueSize } = handle ?? {};
    if (writeQueueSize !== 0 || fd < 0) return undefined;
    try {
      writeSync(fd, NO_BYTES);
      return undefined;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code;
    }
  },

  /**
   * Makes the raw socket send RST when the TLSSocket is destroyed. `raw.resetAndDestroy` cannot be used, because it
   * closes the raw socket first. Node crashes with a segmentation fault if the TLSSocket is destroyed after that, while
   * writes are pending.
   */
  resetWhenClosed(raw: Socket): void {
    (raw as SocketInternals).resetAndClosing = true;
  },

  /** Makes the TLSSocket process bytes of the peer before anything that the raw socket reads. */
  receive(socket: TLSSocket, raw: Socket, bytes: Uint8Array): void {
    const handle = (socket as SocketInternals)._handle;
    if (handle?.receive) handle.receive(bytes);
    else raw.unshift(bytes);
  },

  /**
   * Stops Node from reading the raw socket, until the returned function is called. Returns undefined if this version of
   * Node.js lacks a field.
   */
  holdInput(socket: TLSSocket, raw: Socket): (() => void) | undefined {
    const handle = (socket as SocketInternals)._handle as { readStart?(): number; receive?: unknown } | null;
    const rawHandle = (raw as SocketInternals)._handle;
    if (!handle?.readStart || !handle.receive || !rawHandle?.readStop) return undefined;
    rawHandle.readStop();
    // Shadows the method of the prototype.
    handle.readStart = () => 0;
    return () => {
      delete handle.readStart;
      const current = (socket as SocketInternals)._handle;
      if (current === handle && current.reading) current.readStart?.();
    };
  },

  /**
   * Sets the OCSP response for a client that asks for one. Node's event `OCSPRequest` exists only for sockets of a
   * `tls.Server`, and pauses the handshake.
   */
  setStaple(socket: TLSSocket, response: Uint8Array): void {
    (socket as SocketInternals)._handle?.setOCSPResponse?.(response);
  },

  /** Whether the raw socket still has its descriptor. */
  hasDescriptor(raw: Socket): boolean {
    return !raw.destroyed && ((raw as SocketInternals)._handle?.fd ?? -1) >= 0;
  },

  /** Whether verification found no fault in the peer's certificate. True also if the peer has no certificate. */
  isPeerVerified(socket: TLSSocket): boolean {
    return (socket as SocketInternals)._handle?.verifyError?.() === null;
  },

  /**
   * Whether the peer sent FIN without close_notify. Must be called when the input ends. Libuv stops reading at a FIN.
   * So if libuv still reads, or if reading was paused, the end came from close_notify.
   */
  isTruncated(socket: TLSSocket, raw: Socket): boolean {
    const handle = (raw as SocketInternals)._handle;
    if (!handle?.readStart || !handle.readStop || (socket as SocketInternals)._handle?.reading !== true) return false;
    if (handle.readStart() === UV_EALREADY) return false;
    handle.readStop();
    return true;
  },
};

let loadedTls: typeof tls | undefined;

/**
 * Returns `node:tls`, which is loaded on first use. Loading takes tens of milliseconds and megabytes of memory, and
 * most workers have no TLS client.
 */
export function loadNodeTls(): typeof tls {
  loadedTls ??= process.getBuiltinModule('node:tls');
  return loadedTls;
}
