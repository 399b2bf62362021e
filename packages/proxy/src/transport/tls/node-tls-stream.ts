// The streams of clients whose TLS Weir terminates, and of endpoints that expect TLS. All bytes must pass through the
// TLSSocket, because bytes written directly to the descriptor would be sent unencrypted.
import { constants } from 'node:crypto';
import { Socket } from 'node:net';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import { type NetTcpStream, streamOverSocket } from '../tcp/net-stream.ts';
import { isSendingFin, type SocketOperations } from '../tcp/socket-operations.ts';
import type { AcceptedStream, DetachableStream, DetachedInput, StreamEvents } from '../tcp-transport.ts';
import { loadNodeTls, tlsSocketInternals } from './node-tls.ts';
import type {
  HandshakingStream,
  NegotiatedTls,
  StartTlsOptions,
  TlsServer,
  TlsServerContext,
  TlsServerStream,
} from './tls-server.ts';

/** TLS through Node's TLSSocket. */
export const nodeTlsServer: TlsServer = {
  createContext({ chain, key, clientAuthorities, cipherSuites, sessionIdContext, deriveTicketKeys }) {
    const context = loadNodeTls().createSecureContext({
      cert: chain,
      key,
      // Without client certificates, no CA is trusted. By default each context would contain all root CAs of Node.js.
      ca: clientAuthorities === null ? [] : clientAuthorities,
      minVersion: 'TLSv1.2',
      ciphers: cipherSuites.join(':'),
      honorCipherOrder: true,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ticketKeys: deriveTicketKeys('tickets', TICKET_KEY_BYTES),
      sessionIdContext,
    });
    return nodeTlsContext(context);
  },
};

export function nodeTlsContext(context: SecureContext): TlsServerContext {
  return { start: (from, options, events) => startServerTls(context, from, options, events) };
}

const TICKET_KEY_BYTES = 48;

function startServerTls(
  context: SecureContext,
  from: AcceptedStream,
  { tls, unread, onInput }: StartTlsOptions,
  events: StreamEvents,
): TlsServerStream {
  const { alpn, requestsClientCertificate, staple } = tls;
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
