import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type * as tls from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { findRawTcpBinding, type TcpHandle } from '../tcp/raw-tcp-binding.ts';

// Internal state of a TLSSocket and of the socket below it, which Node's public interface does not offer. If a field is
// missing, no client certificate counts as verified and no end of input counts as truncated.

/** Libuv's code for a handle that already reads. */
const UV_EALREADY = -constants.errno.EALREADY;
const NO_BYTES = new Uint8Array(0);
const hasKnownHandles = findRawTcpBinding() !== undefined;

interface SocketInternals {
  /** Makes `close` send RST. */
  resetAndClosing?: boolean;
  readonly _handle?:
    | (Partial<TcpHandle> & {
        readonly reading?: boolean;
        /** Returns null if the peer's certificate is verified or absent. */
        verifyError?(): Error | null;
      })
    | null;
}

export const tlsSocketInternals = {
  /** Whether the kernel has taken all bytes written to this socket. */
  isWriteQueueEmpty(raw: Socket): boolean {
    return (raw as SocketInternals)._handle?.writeQueueSize === 0;
  },

  /** Returns the errno name if the socket cannot be written to any more; sends nothing. */
  writeErrorOf(raw: Socket): string | undefined {
    const handle = (raw as SocketInternals)._handle;
    // While records are pending, the completion of this write would be taken for theirs.
    if (!hasKnownHandles || handle?.writeQueueSize !== 0) return undefined;
    const result = handle.writeBuffer?.(null, NO_BYTES);
    return typeof result === 'number' && result < 0 ? getSystemErrorName(result) : undefined;
  },

  /**
   * Makes destroying the TLSSocket close this socket by RST. `resetAndDestroy` would close this socket first, and Node
   * crashes with a segmentation fault if the TLSSocket is destroyed before its pending writes have ended.
   */
  resetWhenClosed(raw: Socket): void {
    (raw as SocketInternals).resetAndClosing = true;
  },

  /** Whether the peer's certificate is verified. */
  isPeerVerified(socket: TLSSocket): boolean {
    return (socket as SocketInternals)._handle?.verifyError?.() === null;
  },

  /**
   * To be called when the input ends: whether the peer sent FIN without close_notify. Libuv stops reading on a FIN; if
   * it still reads, or was paused, the end came by close_notify.
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

/** Loaded for the first TLS client: most workers have none, and the module takes megabytes and tens of milliseconds. */
export function loadNodeTls(): typeof tls {
  loadedTls ??= process.getBuiltinModule('node:tls');
  return loadedTls;
}
