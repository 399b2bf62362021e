// The stream of a client whose TLS ends here: bytes are read and written in the clear, and never past its TLSSocket: what is
// written to the descriptor goes out unencrypted.
import { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { type NetTcpStream, streamOverSocket } from '../tcp/net-stream.ts';
import { isSendingFin, type SocketOperations } from '../tcp/socket-operations.ts';
import type { AcceptedStream, StreamEvents, TcpStream } from '../tcp-transport.ts';
import { loadNodeTls, tlsSocketInternals } from './node-tls.ts';

/** On which a client is met. */
export interface TlsServerOptions {
  readonly context: SecureContext;
  /** Protocols as ALPN writes them (RFC 7301); empty: none is agreed on. */
  readonly alpn: Uint8Array;
  /** It must show a certificate of one of the CAs of `context`. */
  readonly requestsClientCertificate: boolean;
}

/** What a handshake came to. */
export interface NegotiatedTls {
  /** `TLSv1.3` */
  readonly version: string;
  /** Null: none. */
  readonly alpn: string | null;
  /** The client has shown a certificate that is believed. */
  readonly isVerified: boolean;
}

export interface TlsServerStream {
  readonly stream: TcpStream;
  /** From `onConnect` on; undefined: the client must show a certificate that is believed, and has not. */
  negotiated(now: number): NegotiatedTls | undefined;
}

export interface StartTlsOptions {
  readonly tls: TlsServerOptions;
  /** The ClientHello, and what came behind it. */
  readonly unread: Uint8Array;
}

/**
 * Takes the stream, which is not to be used any more, and makes the handshake: `onConnect` says that it is done, `onClose` without
 * it that it has failed. In the clear it does not read before `readStart`.
 */
export function startTls(
  from: AcceptedStream,
  { tls, unread }: StartTlsOptions,
  events: StreamEvents,
): TlsServerStream {
  const { context, alpn, requestsClientCertificate } = tls;
  const raw = from.detachSocket(unread);
  // It tells the TLSSocket, which tells us.
  raw.on('error', ignore);
  const socket = tlsSocketOn(raw, {
    isServer: true,
    secureContext: context,
    requestCert: requestsClientCertificate,
    rejectUnauthorized: requestsClientCertificate,
    ...(alpn.length > 0 ? { ALPNProtocols: alpn } : {}),
  });
  socket[RAW_SOCKET] = raw;
  const stream = streamOverSocket(socket, TLS_SOCKET_OPERATIONS, events);
  socket[STREAM] = stream;
  socket.push = push;
  socket.on('secure', onSecure);
  socket.on('_tlsError', onTlsError);
  return {
    stream,
    negotiated: (now) => negotiatedTlsOf(socket, { asksForCertificate: requestsClientCertificate, now }),
  };
}

/** Whatever it throws: nobody else has the descriptor any more. */
function tlsSocketOn(raw: Socket, options: TLSSocketOptions): TlsServerSocket {
  try {
    return new (loadNodeTls().TLSSocket)(raw, options) as TlsServerSocket;
  } catch (thrown) {
    raw.destroy();
    throw thrown;
  }
}

const RAW_SOCKET = Symbol('raw');
const STREAM = Symbol('stream of');
const IS_TRUNCATED = Symbol('is cut');

interface TlsServerSocket extends TLSSocket {
  [RAW_SOCKET]: Socket;
  [STREAM]: NetTcpStream;
  [IS_TRUNCATED]?: boolean;
}

/** As many records as Node hands to the kernel in one go. */
const MAX_WRITE_BYTES = 131_072;

/** Of which all parts go to the kernel in one go. */
const MAX_RECORD_BYTES = 16_384;

const TLS_SOCKET_OPERATIONS: SocketOperations = {
  maxWriteBytes: MAX_WRITE_BYTES,
  write(socket, bytes, { isOurs, onWritten }) {
    // With no write before it that waits, it is encrypted before the call returns: only who waits must not share memory.
    socket.write(isOurs || socket.writableLength === 0 ? bytes : Buffer.from(bytes), onWritten);
  },
  // Node says so only in the next turn: to wait for it would stop and start the other side for each message.
  hasTaken: (socket, length) => length <= MAX_RECORD_BYTES && tlsSocketInternals.isWriteQueueEmpty(rawOf(socket)),
  reset(socket) {
    if (!isSendingFin(socket)) resetNow.call(socket as TlsServerSocket);
    // libuv refuses to reset while a FIN waits: for its turn, or, which is rare, for a client that reads nothing.
    else if (tlsSocketInternals.isWriteQueueEmpty(rawOf(socket))) socket.once('finish', resetNow);
    else socket.destroy();
  },
  probe(socket) {
    const code = tlsSocketInternals.writeErrorOf(rawOf(socket));
    if (code !== undefined) failWith(socket as TlsServerSocket, code);
  },
  endFault: (socket) =>
    (socket as TlsServerSocket)[IS_TRUNCATED] === true && !socket.writableEnded ? 'ECONNRESET' : undefined,
};

function rawOf(socket: Socket): Socket {
  return (socket as TlsServerSocket)[RAW_SOCKET];
}

function resetNow(this: TlsServerSocket): void {
  if (this.destroyed) return;
  tlsSocketInternals.resetWhenClosed(this[RAW_SOCKET]);
  this.destroy();
}

/**
 * RFC 8446, 6.1: only close_notify is the end of what the peer has to say, for anybody on the way can send a FIN; where ours
 * is out already, its answer may be a FIN alone, as many send it.
 */
function push(this: TlsServerSocket, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null) this[IS_TRUNCATED] = tlsSocketInternals.isTruncated(this, this[RAW_SOCKET]);
  return Socket.prototype.push.call(this, chunk, encoding);
}

function onSecure(this: TlsServerSocket): void {
  this[STREAM].tell('onConnect');
}

/** Its alert, if it is one of ours, is on its way. */
function onTlsError(this: TlsServerSocket, error: NodeJS.ErrnoException): void {
  failWith(this, error.code ?? 'EPROTO');
}

/** The TLSSocket first, always: it does not survive (Node ends by a fault) that the socket below is closed before it. */
function failWith(socket: TlsServerSocket, code: string): void {
  socket[STREAM].failed(code);
  socket.destroy();
}

function ignore(): void {}

function negotiatedTlsOf(
  socket: TLSSocket,
  { asksForCertificate, now }: { asksForCertificate: boolean; now: number },
): NegotiatedTls | undefined {
  if (asksForCertificate && !isPeerCertificateValid(socket, now)) return undefined;
  const { alpnProtocol } = socket;
  return {
    version: socket.getProtocol() ?? '',
    alpn: typeof alpnProtocol === 'string' ? alpnProtocol : null,
    isVerified: asksForCertificate,
  };
}

/** Node lets any certificate pass, for its owner to judge. That of a session that is resumed may have ended meanwhile. */
function isPeerCertificateValid(socket: TLSSocket, now: number): boolean {
  const certificate = socket.getPeerX509Certificate();
  return (
    certificate !== undefined && tlsSocketInternals.isPeerVerified(socket) && certificate.validToDate.getTime() > now
  );
}
