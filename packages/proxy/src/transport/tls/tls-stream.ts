// The streams of clients whose TLS Weir terminates, and of endpoints that expect TLS. All bytes must pass through the
// TLSSocket, because bytes written directly to the descriptor would be sent unencrypted.
import { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { type NetTcpStream, streamOverSocket } from '../tcp/net-stream.ts';
import { isSendingFin, type SocketOperations } from '../tcp/socket-operations.ts';
import type { AcceptedStream, DetachableStream, DetachedInput, StreamEvents, TcpStream } from '../tcp-transport.ts';
import { loadNodeTls, tlsSocketInternals } from './node-tls.ts';

/** The server's settings for a TLS handshake. */
export interface TlsServerOptions {
  readonly context: SecureContext;
  /** The supported protocols, in the wire format of ALPN (RFC 7301). Empty to negotiate none. */
  readonly alpn: Uint8Array;
  /** Whether the client must present a certificate that is signed by a CA of `context`. */
  readonly requestsClientCertificate: boolean;
  /** The OCSP response (RFC 6066 §8, DER) for clients that ask for one; undefined if there is none. */
  readonly staple?: Uint8Array | undefined;
}

/** The result of a TLS handshake. */
export interface NegotiatedTls {
  /** The TLS version, for example `TLSv1.3`. */
  readonly version: string;
  /** The protocol negotiated with ALPN, or null if none was negotiated. */
  readonly alpn: string | null;
  /** Whether the client has presented a verified certificate. */
  readonly isVerified: boolean;
}

export interface HandshakingStream {
  readonly stream: TcpStream;
  /**
   * Reads and processes a part of the peer's handshake. Must be called after each call of `onInput`, until it returns
   * false.
   */
  readInput(): boolean;
}

export interface TlsServerStream extends HandshakingStream {
  /**
   * Returns the result of the handshake, or undefined if a required client certificate is missing or not valid. Must be
   * called after `onConnect`.
   */
  negotiated(now: number): NegotiatedTls | undefined;
}

export interface StartTlsOptions {
  readonly tls: TlsServerOptions;
  /** The bytes already read from the client, starting with the ClientHello. */
  readonly unread: Uint8Array;
  /**
   * Called when the client has sent more of its handshake, which waits for `readInput`. If absent, or if the transport
   * cannot hold the input back, the stream processes the input by itself.
   */
  readonly onInput?: () => void;
}

/**
 * Takes over the stream `from`, and processes `unread` before it returns. `onConnect` is called if the handshake succeeds;
 * only `onClose` is called if it fails. Both are called after `startTls` has returned. The returned stream reads nothing
 * before `readStart`.
 */
export function startTls(
  from: AcceptedStream,
  { tls, unread, onInput }: StartTlsOptions,
  events: StreamEvents,
): TlsServerStream {
  const { context, alpn, requestsClientCertificate, staple } = tls;
  const { socket: raw, input } = from.detach();
  // Ignored, because the TLSSocket reports the errors of the raw socket.
  raw.on('error', ignore);
  const socketOptions: TLSSocketOptions = {
    isServer: true,
    secureContext: context,
    requestCert: requestsClientCertificate,
    rejectUnauthorized: requestsClientCertificate,
    ...(alpn.length > 0 ? { ALPNProtocols: alpn } : {}),
  };
  const socket = ownedSocket(raw, input, () => new (loadNodeTls().TLSSocket)(raw, socketOptions));
  socket[RAW_SOCKET] = raw;
  if (staple !== undefined) tlsSocketInternals.setStaple(socket, staple);
  const stream = streamOverTls(socket, events);
  // Comes before `onSecure`, so that Node reads the socket when the owner learns that the handshake is complete.
  if (input !== undefined) holdInput(socket, input, onInput);
  socket.on('secure', onSecure);
  socket.on('_tlsError', onTlsError);
  tlsSocketInternals.receive(socket, raw, unread);
  return {
    stream,
    readInput: () => readInput(socket),
    negotiated: (now) => negotiatedTlsOf(socket, { asksForCertificate: requestsClientCertificate, now }),
  };
}

export interface TlsClientOptions {
  /** Contains the CAs that must have issued the server's certificate. */
  readonly context: SecureContext;
  /** The server name in the ClientHello, which the server's certificate must contain. */
  readonly serverName: string;
  /** The protocols that are offered with ALPN, in the order of preference. */
  readonly alpn: readonly string[];
  /** A session of an earlier connection with the same `context` and `serverName`. */
  readonly session: Buffer | undefined;
  /** Called with each session that the server offers for resumption. */
  onSession(session: Buffer): void;
  /** Called when the server has sent more of its handshake, see `StartTlsOptions`. */
  onInput(): void;
  /** Called just before `onConnect` with the protocol that the server has chosen; undefined if it has chosen none. */
  onProtocol(protocol: string | undefined): void;
}

/**
 * Takes over the connected stream `from`, and begins a TLS session with the server at its other end. `onConnect` is called
 * when the server's certificate is verified. If the certificate is not valid, only `onClose` is called, with the error code
 * of Node.js. Both are called after `startClientTls` has returned.
 */
export function startClientTls(
  from: DetachableStream,
  { context, serverName, alpn, session, onSession, onInput, onProtocol }: TlsClientOptions,
  events: StreamEvents,
): HandshakingStream {
  const { socket: raw, input } = from.detach();
  raw.setNoDelay(true);
  const socket = ownedSocket(raw, input, () =>
    loadNodeTls().connect({
      socket: raw,
      secureContext: context,
      servername: serverName,
      ALPNProtocols: [...alpn],
      rejectUnauthorized: true,
      ...(session === undefined ? {} : { session }),
    }),
  );
  socket[RAW_SOCKET] = raw;
  const stream = streamOverTls(socket, events);
  raw.on('error', (error: NodeJS.ErrnoException) => failWith(socket, error.code ?? 'ECONNRESET'));
  if (input !== undefined) holdInput(socket, input, onInput);
  socket.on('session', onSession);
  socket.once('secureConnect', () => onProtocol(socket.alpnProtocol || undefined));
  socket.once('secureConnect', onSecure);
  return { stream, readInput: () => readInput(socket) };
}

function streamOverTls(socket: OwnedTlsSocket, events: StreamEvents): NetTcpStream {
  const stream = streamOverSocket(socket, TLS_SOCKET_OPERATIONS, events);
  socket[STREAM] = stream;
  socket.push = push;
  return stream;
}

/** Creates the TLSSocket. If `create` throws, destroys the raw socket, because nothing else owns the descriptor. */
function ownedSocket(raw: Socket, input: DetachedInput | undefined, create: () => TLSSocket): OwnedTlsSocket {
  try {
    return create() as OwnedTlsSocket;
  } catch (thrown) {
    input?.close();
    raw.destroy();
    throw thrown;
  }
}

/** Makes the peer's input wait for `readInput`, until the handshake is complete. */
function holdInput(socket: OwnedTlsSocket, input: DetachedInput, onInput: (() => void) | undefined): void {
  const resume = onInput && tlsSocketInternals.holdInput(socket, socket[RAW_SOCKET]);
  if (onInput === undefined || resume === undefined) {
    input.close();
    return;
  }
  socket[HELD_INPUT] = input;
  // Comes before the handler of Node.js that makes `secureConnect` of this event.
  socket.prependOnceListener('secure', () => {
    socket[HELD_INPUT] = undefined;
    input.close();
    resume();
  });
  socket.once('close', () => input.close());
  input.watch(onInput);
}

/** Reads and processes one part of the held input. Returns whether the held input may have more. */
function readInput(socket: OwnedTlsSocket): boolean {
  const input = socket[HELD_INPUT];
  const raw = socket[RAW_SOCKET];
  if (input === undefined || socket.destroyed || !tlsSocketInternals.hasDescriptor(raw)) return false;
  const bytes = input.read();
  if (typeof bytes === 'string') failWith(socket, bytes);
  else if (bytes !== undefined) tlsSocketInternals.receive(socket, raw, bytes);
  return typeof bytes === 'object' && socket[HELD_INPUT] !== undefined;
}

const RAW_SOCKET = Symbol('raw');
const HELD_INPUT = Symbol('held input');
const STREAM = Symbol('stream of');
const IS_TRUNCATED = Symbol('is truncated');

interface OwnedTlsSocket extends TLSSocket {
  [RAW_SOCKET]: Socket;
  [STREAM]: NetTcpStream;
  [IS_TRUNCATED]?: boolean;
  /** The input of a handshake that waits for `readInput`. */
  [HELD_INPUT]?: DetachedInput | undefined;
}

/** The maximum number of bytes that Node passes to the kernel in one write. */
const MAX_WRITE_BYTES = 131_072;

/**
 * The maximum payload of a TLS record. A write of at most this size becomes one record, which Node passes to the kernel
 * in one piece.
 */
const MAX_RECORD_BYTES = 16_384;

const TLS_SOCKET_OPERATIONS: SocketOperations = {
  maxWriteBytes: MAX_WRITE_BYTES,
  write(socket, bytes, { mayKeep, onWritten }) {
    // If no write is pending, the bytes are encrypted before `write` returns. Otherwise the socket keeps the bytes, so
    // they are copied.
    socket.write(mayKeep || socket.writableLength === 0 ? bytes : Buffer.from(bytes), onWritten);
  },
  // Node reports a completed write one loop iteration later. Waiting for the report would pause and resume the sender
  // for each message.
  hasTaken: (socket, length) => length <= MAX_RECORD_BYTES && tlsSocketInternals.isWriteQueueEmpty(rawOf(socket)),
  reset(socket) {
    if (!isSendingFin(socket)) resetNow.call(socket as OwnedTlsSocket);
    // Libuv refuses to reset while a FIN is queued, briefly or, rarely, because the client does not read.
    else if (tlsSocketInternals.isWriteQueueEmpty(rawOf(socket))) socket.once('finish', resetNow);
    else socket.destroy();
  },
  probe(socket) {
    const code = tlsSocketInternals.writeErrorOf(rawOf(socket));
    if (code !== undefined) failWith(socket as OwnedTlsSocket, code);
  },
  endFault: (socket) =>
    (socket as OwnedTlsSocket)[IS_TRUNCATED] === true && !socket.writableEnded ? 'ECONNRESET' : undefined,
};

function rawOf(socket: Socket): Socket {
  return (socket as OwnedTlsSocket)[RAW_SOCKET];
}

function resetNow(this: OwnedTlsSocket): void {
  if (this.destroyed) return;
  tlsSocketInternals.resetWhenClosed(this[RAW_SOCKET]);
  this.destroy();
}

/**
 * Replaces `push` of the TLSSocket, to detect input that was truncated. Only close_notify is a proper end of the peer's
 * data (RFC 8446 §6.1), because an attacker on the path can forge a FIN. After Weir's own close_notify, a FIN without
 * close_notify is accepted, because many peers send only a FIN.
 */
function push(this: OwnedTlsSocket, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null) this[IS_TRUNCATED] = tlsSocketInternals.isTruncated(this, this[RAW_SOCKET]);
  return Socket.prototype.push.call(this, chunk, encoding);
}

function onSecure(this: OwnedTlsSocket): void {
  this[STREAM].emit('onConnect');
}

/** Handles a TLS error. If an alert is due, Node has already sent it. */
function onTlsError(this: OwnedTlsSocket, error: NodeJS.ErrnoException): void {
  failWith(this, error.code ?? 'EPROTO');
}

/** Destroys the TLSSocket, which closes the raw socket. Node crashes if the raw socket is closed first. */
function failWith(socket: OwnedTlsSocket, code: string): void {
  socket[STREAM].setCloseCode(code);
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
 * Returns whether the client's certificate is valid. Node leaves this decision to the application. The expiry date is
 * checked again, because the certificate of a resumed session may have expired since the first handshake.
 */
function isPeerCertificateValid(socket: TLSSocket, now: number): boolean {
  const certificate = socket.getPeerX509Certificate();
  return (
    certificate !== undefined && tlsSocketInternals.isPeerVerified(socket) && certificate.validToDate.getTime() > now
  );
}
