import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type * as tls from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { findRawTcpBinding, type TcpHandle } from '../tcp/raw-tcp-binding.ts';

// What Node's public interface does not tell of a TLSSocket and the socket below it. Each is looked for before it is used. Where it
// is missing no client is believed, and no end is taken for a cut.

/** libuv's: it reads already. */
const UV_EALREADY = -constants.errno.EALREADY;
const NO_BYTES = new Uint8Array(0);
/** Then handles are as we know them. */
const hasKnownHandles = findRawTcpBinding() !== undefined;

interface SocketInternals {
  /** Its close is a reset. */
  resetAndClosing?: boolean;
  readonly _handle?:
    | (Partial<TcpHandle> & {
        readonly reading?: boolean;
        /** Null: the certificate of the peer is believed, or there is none. */
        verifyError?(): Error | null;
      })
    | null;
}

export const tlsSocketInternals = {
  /** Whether the kernel has taken all that was written to this socket. */
  isWriteQueueEmpty(raw: Socket): boolean {
    return (raw as SocketInternals)._handle?.writeQueueSize === 0;
  },

  /** Why nothing can be written to this socket any more, as errno has it; sends nothing. */
  writeErrorOf(raw: Socket): string | undefined {
    const handle = (raw as SocketInternals)._handle;
    // Past records that wait, the end of this write would be taken for theirs.
    if (!hasKnownHandles || handle?.writeQueueSize !== 0) return undefined;
    const result = handle.writeBuffer?.(null, NO_BYTES);
    return typeof result === 'number' && result < 0 ? getSystemErrorName(result) : undefined;
  },

  /**
   * When its TLSSocket is destroyed, this one is closed by RST. `resetAndDestroy` would close it first, and Node ends by a
   * segmentation fault when the TLSSocket is destroyed between that and the end of what it had written.
   */
  resetWhenClosed(raw: Socket): void {
    (raw as SocketInternals).resetAndClosing = true;
  },

  /** Whether the certificate that the peer has shown is believed. */
  isPeerVerified(socket: TLSSocket): boolean {
    return (socket as SocketInternals)._handle?.verifyError?.() === null;
  },

  /**
   * At the moment at which the end of what is read becomes known: whether the peer has closed without saying so by TLS. With a FIN
   * libuv stops reading; where it reads on, or was told to pause, the end is by close_notify.
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

/** Loaded for the first client whose TLS ends here: in most workers none ever comes, and it takes megabytes and tens of milliseconds. */
export function loadNodeTls(): typeof tls {
  loadedTls ??= process.getBuiltinModule('node:tls');
  return loadedTls;
}
