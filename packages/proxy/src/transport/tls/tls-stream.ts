// The stream of a client whose TLS is terminated here. All bytes must pass through its TLSSocket: bytes written to the
// descriptor would be sent unencrypted.
import { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { type NetTcpStream, streamOverSocket } from '../tcp/net-stream.ts';
import { isSendingFin, type SocketOperations } from '../tcp/socket-operations.ts';
import type { AcceptedStream, StreamEvents, TcpStream } from '../tcp-transport.ts';
import { loadNodeTls, tlsSocketInternals } from './node-tls.ts';

/** Server settings of a handshake. */
export interface TlsServerOptions {
  readonly context: SecureContext;
  /** Protocols in the wire format of ALPN (RFC 7301); empty to negotiate none. */
  readonly alpn: Uint8Array;
  /** Whether the client must present a certificate of a CA of `context`. */
  readonly requestsClientCertificate: boolean;
}

/** The result of a handshake. */
export interface NegotiatedTls {
  /** For example `TLSv1.3`. */
  readonly version: string;
  /** Null if no protocol was negotiated. */
  readonly alpn: string | null;
  /** Whether the client has presented a verified certificate. */
  readonly isVerified: boolean;
}

export interface TlsServerStream {
  readonly stream: TcpStream;
  /** To be called after `onConnect`. Returns undefined if a required client certificate is missing or not valid. */
  negotiated(now: number): NegotiatedTls | undefined;
}

export interface StartTlsOptions {
  readonly tls: TlsServerOptions;
  /** The bytes read so far, from the ClientHello on. */
  readonly unread: Uint8Array;
}

/**
 * Takes over the stream and performs the handshake: `onConnect` follows if it succeeds, `onClose` alone if it fails.
 * The decrypted stream does not read before `readStart`.
 */
export function startTls(
  from: AcceptedStream,
  { tls, unread }: StartTlsOptions,
  events: StreamEvents,
): TlsServerStream {
  const { context, alpn, requestsClientCertificate } = tls;
  const raw = from.detachSocket(unread);
  // The TLSSocket reports the errors of the raw socket.
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

/**
 * Creates the TLSSocket. If its constructor throws, the raw socket is destroyed, because nothing else owns its
 * descriptor.
 */
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
const IS_TRUNCATED = Symbol('is truncated');

interface TlsServerSocket extends TLSSocket {
  [RAW_SOCKET]: Socket;
  [STREAM]: NetTcpStream;
  [IS_TRUNCATED]?: boolean;
}

/** The maximum that Node passes to the kernel in one write. */
const MAX_WRITE_BYTES = 131_072;

/** The maximum content of a TLS record. A write of at most one record reaches the kernel in one piece. */
const MAX_RECORD_BYTES = 16_384;

const TLS_SOCKET_OPERATIONS: SocketOperations = {
  maxWriteBytes: MAX_WRITE_BYTES,
  write(socket, bytes, { mayKeep, onWritten }) {
    // Without a pending write the bytes are encrypted before `write` returns; only a pending write needs a copy.
    socket.write(mayKeep || socket.writableLength === 0 ? bytes : Buffer.from(bytes), onWritten);
  },
  // Node reports this one loop iteration later; waiting for it would pause and resume the peer for each message.
  hasTaken: (socket, length) => length <= MAX_RECORD_BYTES && tlsSocketInternals.isWriteQueueEmpty(rawOf(socket)),
  reset(socket) {
    if (!isSendingFin(socket)) resetNow.call(socket as TlsServerSocket);
    // Libuv refuses to reset while a FIN is queued, briefly or, rarely, because the client does not read.
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
 * Handles input of the TLSSocket. Only close_notify is a proper end of the peer's data (RFC 8446 §6.1), because an
 * attacker on the path can forge a FIN. After our own close_notify a bare FIN is accepted, as many peers send it.
 */
function push(this: TlsServerSocket, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null) this[IS_TRUNCATED] = tlsSocketInternals.isTruncated(this, this[RAW_SOCKET]);
  return Socket.prototype.push.call(this, chunk, encoding);
}

function onSecure(this: TlsServerSocket): void {
  this[STREAM].tell('onConnect');
}

/** Handles a TLS error. An alert of this side has already been sent. */
function onTlsError(this: TlsServerSocket, error: NodeJS.ErrnoException): void {
  failWith(this, error.code ?? 'EPROTO');
}

/** Destroys the TLSSocket first: Node crashes if the socket below it is closed before. */
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

/**
 * Returns whether the client's certificate is valid. Node leaves the decision to the application. The certificate of a
 * resumed session may have expired meanwhile.
 */
function isPeerCertificateValid(socket: TLSSocket, now: number): boolean {
  const certificate = socket.getPeerX509Certificate();
  return (
    certificate !== undefined && tlsSocketInternals.isPeerVerified(socket) && certificate.validToDate.getTime() > now
  );
}
