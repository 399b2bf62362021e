// What Node's public interface does not tell of a TLSSocket and the socket below it. Each is looked for before it is used. Where it
// is missing no client is believed, and no end is taken for a cut.
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { findBareBinding, type TcpHandle } from '../tcp/bare-binding.ts';

/** libuv's: it reads already. */
const ALREADY = -constants.errno.EALREADY;

const NOTHING = new Uint8Array(0);
/** Then handles are as we know them. */
const isKnown = findBareBinding() !== undefined;

interface InnerSocket {
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

export const innerTls = {
  /** Whether the kernel has taken all that was written to this socket. */
  isTaken(raw: Socket): boolean {
    return (raw as InnerSocket)._handle?.writeQueueSize === 0;
  },

  /** Why nothing can be written to this socket any more, as errno has it; sends nothing. */
  failureOf(raw: Socket): string | undefined {
    const handle = (raw as InnerSocket)._handle;
    // Past records that wait, the end of this write would be taken for theirs.
    if (!isKnown || handle?.writeQueueSize !== 0) return undefined;
    const result = handle.writeBuffer?.(null, NOTHING);
    return typeof result === 'number' && result < 0 ? getSystemErrorName(result) : undefined;
  },

  /**
   * When its TLSSocket is destroyed, this one is closed by RST. `resetAndDestroy` would close it first, and Node ends by a
   * segmentation fault when the TLSSocket is destroyed between that and the end of what it had written.
   */
  resetWhenClosed(raw: Socket): void {
    (raw as InnerSocket).resetAndClosing = true;
  },

  /** Whether the certificate that the peer has shown is believed. */
  isVerified(socket: TLSSocket): boolean {
    return (socket as InnerSocket)._handle?.verifyError?.() === null;
  },

  /**
   * At the moment at which the end of what is read becomes known: whether the peer has closed without saying so by TLS. With a FIN
   * libuv stops reading; where it reads on, or was told to pause, the end is by close_notify.
   */
  isCut(socket: TLSSocket, raw: Socket): boolean {
    const handle = (raw as InnerSocket)._handle;
    if (!handle?.readStart || !handle.readStop || (socket as InnerSocket)._handle?.reading !== true) return false;
    if (handle.readStart() === ALREADY) return false;
    handle.readStop();
    return true;
  },
};
